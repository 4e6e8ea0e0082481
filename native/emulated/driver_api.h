#pragma once
// The part of the CUDA driver API that the emulated driver answers: prototypes written by hand from the public
// ABI, so that nothing of NVIDIA's is needed at build time.

#include <cstddef>
#include <cstdint>

#define CUDASHM_EXPORT extern "C" __attribute__((visibility("default")))

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;

struct CUuuid {
  unsigned char bytes[16];
};

struct CUipcMemHandle {
  char reserved[64];
};

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NOT_INITIALIZED = 3;
inline constexpr CUresult CUDA_ERROR_DEINITIALIZED = 4;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
inline constexpr CUresult CUDA_ERROR_INVALID_CONTEXT = 201;
inline constexpr CUresult CUDA_ERROR_ALREADY_MAPPED = 208;
inline constexpr CUresult CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217;
inline constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
inline constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;
inline constexpr CUresult CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708;
inline constexpr CUresult CUDA_ERROR_CONTEXT_IS_DESTROYED = 709;
inline constexpr CUresult CUDA_ERROR_NOT_PERMITTED = 800;
inline constexpr CUresult CUDA_ERROR_NOT_SUPPORTED = 801;
inline constexpr CUresult CUDA_ERROR_UNKNOWN = 999;

inline constexpr unsigned CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1;

CUDASHM_EXPORT CUresult cuInit(unsigned flags);
CUDASHM_EXPORT CUresult cuDriverGetVersion(int* version);
CUDASHM_EXPORT CUresult cuGetErrorName(CUresult error, const char** name);
CUDASHM_EXPORT CUresult cuGetErrorString(CUresult error, const char** text);
CUDASHM_EXPORT CUresult cuGetProcAddress(const char* name, void** address, int version, unsigned long long flags);
CUDASHM_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** address, int version, unsigned long long flags,
                                            int* status);

CUDASHM_EXPORT CUresult cuDeviceGetCount(int* count);
CUDASHM_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUDASHM_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device);
CUDASHM_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUDASHM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
CUDASHM_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
CUDASHM_EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device);
CUDASHM_EXPORT CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device);
CUDASHM_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id);
CUDASHM_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer);

CUDASHM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUDASHM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUDASHM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUDASHM_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);
CUDASHM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
CUDASHM_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUDASHM_EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
CUDASHM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context);
CUDASHM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUDASHM_EXPORT CUresult cuCtxGetCurrent(CUcontext* context);
CUDASHM_EXPORT CUresult cuCtxSetCurrent(CUcontext context);
CUDASHM_EXPORT CUresult cuCtxGetDevice(CUdevice* device);
CUDASHM_EXPORT CUresult cuCtxGetFlags(unsigned* flags);
CUDASHM_EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version);
CUDASHM_EXPORT CUresult cuCtxSynchronize(void);

CUDASHM_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes);
CUDASHM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes);
CUDASHM_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer);
CUDASHM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer);
CUDASHM_EXPORT CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags);
CUDASHM_EXPORT CUresult cuMemAllocHost_v2(void** pointer, size_t bytes);
CUDASHM_EXPORT CUresult cuMemFreeHost(void* pointer);
CUDASHM_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer, unsigned flags);
CUDASHM_EXPORT CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer);
CUDASHM_EXPORT CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr pointer);

CUDASHM_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASHM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASHM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes);
CUDASHM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
CUDASHM_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes);
CUDASHM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASHM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASHM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASHM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes);
CUDASHM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);

CUDASHM_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer);
CUDASHM_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags);
CUDASHM_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags);
CUDASHM_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer);

CUDASHM_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUDASHM_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority);
CUDASHM_EXPORT CUresult cuStreamQuery(CUstream stream);
CUDASHM_EXPORT CUresult cuStreamSynchronize(CUstream stream);
CUDASHM_EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
