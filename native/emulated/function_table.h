#pragma once

#include <optional>
#include <string_view>

// X(exported name, name that cuGetProcAddress knows, first CUDA version that has it)
#define CUDASHM_EMULATED_FUNCTIONS(X)                                             \
  X(cuInit, "cuInit", 2000)                                                       \
  X(cuDriverGetVersion, "cuDriverGetVersion", 2020)                               \
  X(cuGetErrorName, "cuGetErrorName", 6000)                                       \
  X(cuGetErrorString, "cuGetErrorString", 6000)                                   \
  X(cuGetProcAddress, "cuGetProcAddress", 11030)                                  \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000)                               \
  X(cuDeviceGetCount, "cuDeviceGetCount", 2000)                                   \
  X(cuDeviceGet, "cuDeviceGet", 2000)                                             \
  X(cuDeviceGetName, "cuDeviceGetName", 2000)                                     \
  X(cuDeviceGetUuid, "cuDeviceGetUuid", 9020)                                     \
  X(cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040)                                 \
  X(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020)                                \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000)                           \
  X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010)                             \
  X(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", 4010)                         \
  X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000)                         \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000)                   \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000)             \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000)                 \
  X(cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags", 11000)           \
  X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000)               \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020)                                          \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000)                                        \
  X(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000)                                \
  X(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000)                                  \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000)                                     \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000)                                     \
  X(cuCtxGetDevice, "cuCtxGetDevice", 2000)                                       \
  X(cuCtxGetFlags, "cuCtxGetFlags", 7000)                                         \
  X(cuCtxGetApiVersion, "cuCtxGetApiVersion", 3020)                               \
  X(cuCtxSynchronize, "cuCtxSynchronize", 2000)                                   \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 3020)                                        \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020)                                            \
  X(cuMemFree_v2, "cuMemFree", 3020)                                              \
  X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020)                        \
  X(cuMemHostAlloc, "cuMemHostAlloc", 2020)                                       \
  X(cuMemAllocHost_v2, "cuMemAllocHost", 3020)                                    \
  X(cuMemFreeHost, "cuMemFreeHost", 2000)                                         \
  X(cuMemHostGetDevicePointer_v2, "cuMemHostGetDevicePointer", 3020)              \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000)                         \
  X(cuPointerGetAttributes, "cuPointerGetAttributes", 7000)                       \
  X(cuMemcpy, "cuMemcpy", 4000)                                                   \
  X(cuMemcpyAsync, "cuMemcpyAsync", 4000)                                         \
  X(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020)                                        \
  X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020)                              \
  X(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020)                                        \
  X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020)                              \
  X(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020)                                        \
  X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020)                              \
  X(cuMemsetD8_v2, "cuMemsetD8", 3020)                                            \
  X(cuMemsetD8Async, "cuMemsetD8Async", 3020)                                     \
  X(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010)                                 \
  X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010)                               \
  X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000)                           \
  X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010)                             \
  X(cuStreamCreate, "cuStreamCreate", 2000)                                       \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050)               \
  X(cuStreamQuery, "cuStreamQuery", 2000)                                         \
  X(cuStreamSynchronize, "cuStreamSynchronize", 2000)                             \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 4000)

namespace cudashm::emulated {

/** One per exported CUDA function, in the order of the table. */
enum class Function : unsigned {
#define X(name, asked, version) name,
  CUDASHM_EMULATED_FUNCTIONS(X)
#undef X
      count
};

inline constexpr unsigned function_count = static_cast<unsigned>(Function::count);

const char* function_name(Function function);

/** The function exported under exactly this name. */
std::optional<Function> find_function(std::string_view exported);

struct ProcAddress {
  void* address;
  /** 0 found, 1 unknown name, 2 known but newer than the version asked for. */
  int status;
};

/** cuGetProcAddress's own search: by the name without its version suffix, the newest the version allows. */
ProcAddress find_proc_address(std::string_view asked, int version);

}  // namespace cudashm::emulated
