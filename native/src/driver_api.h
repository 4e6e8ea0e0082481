#pragma once

#include <cstddef>
#include <cstdint>

#include "shared_library.h"

namespace cudashm {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;

constexpr CUresult kCudaSuccess = 0;
constexpr CUresult kCudaErrorInvalidContext = 201;
constexpr unsigned kIpcLazyEnablePeerAccess = 1;

struct CUuuid {
  unsigned char bytes[16];
};

// Passed by value, as the driver's ABI asks.
struct CUipcMemHandle {
  char reserved[64];
};

// The driver's functions that are used here, resolved once when the library is loaded.
struct DriverApi {
  // Throws NativeError (library_unusable) that names a function the library lacks.
  static DriverApi Resolve(const SharedLibrary& library);

  // True for our own library on host memory: only it exports the marker.
  static bool IsEmulated(const SharedLibrary& library);

  CUresult (*init)(unsigned flags);
  CUresult (*driver_get_version)(int* version);
  CUresult (*get_error_name)(CUresult error, const char** name);
  CUresult (*device_get_count)(int* count);
  CUresult (*device_get)(CUdevice* device, int ordinal);
  CUresult (*device_get_name)(char* name, int length, CUdevice device);
  CUresult (*device_get_uuid)(CUuuid* uuid, CUdevice device);
  CUresult (*device_total_mem)(std::size_t* bytes, CUdevice device);
  CUresult (*device_get_pci_bus_id)(char* id, int length, CUdevice device);
  CUresult (*device_get_attribute)(int* value, int attribute, CUdevice device);
  CUresult (*device_primary_ctx_retain)(CUcontext* context, CUdevice device);
  CUresult (*device_primary_ctx_release)(CUdevice device);
  CUresult (*ctx_push_current)(CUcontext context);
  CUresult (*ctx_pop_current)(CUcontext* context);
  CUresult (*mem_get_info)(std::size_t* free_bytes, std::size_t* total_bytes);
  CUresult (*mem_alloc)(CUdeviceptr* pointer, std::size_t bytes);
  CUresult (*mem_free)(CUdeviceptr pointer);
  CUresult (*mem_get_address_range)(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer);
  CUresult (*memcpy_host_to_device)(CUdeviceptr to, const void* from, std::size_t bytes);
  CUresult (*memcpy_device_to_host)(void* to, CUdeviceptr from, std::size_t bytes);
  CUresult (*stream_synchronize)(CUstream stream);
  CUresult (*ipc_get_mem_handle)(CUipcMemHandle* handle, CUdeviceptr pointer);
  CUresult (*ipc_open_mem_handle)(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags);
  CUresult (*ipc_close_mem_handle)(CUdeviceptr pointer);
};

}  // namespace cudashm
