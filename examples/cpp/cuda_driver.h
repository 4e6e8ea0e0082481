#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

// The few calls of the CUDA driver API that sharing memory takes. The prototypes are written out so that this
// builds without the CUDA toolkit; with it, include <cuda.h> in their place.
using CUresult = int;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUdeviceptr = unsigned long long;
struct CUipcMemHandle {
  char reserved[64];
};

/** NVIDIA's libcuda.so.1, or the emulated one where LD_LIBRARY_PATH says so. */
class CudaDriver {
 public:
  CudaDriver() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
  }

  /** Calls `name`, whose parameters must have the types of `arguments`. Throws what the driver refuses. */
  template <typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const auto result = symbol<CUresult (*)(Arguments...)>(name)(arguments...);
    if (result == 0) return;
    const char* error = nullptr;
    symbol<CUresult (*)(CUresult, const char**)>("cuGetErrorName")(result, &error);
    throw std::runtime_error(std::string(name) + ": " + (error ? error : "unknown error") + " (" +
                             std::to_string(result) + ")");
  }

 private:
  template <typename Function>
  Function symbol(const char* name) const {
    auto* address = dlsym(library_, name);
    if (address == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
    return reinterpret_cast<Function>(address);
  }

  void* library_;
};

/** GPU memory of this process. Must be an allocation of its own: a handle always stands for a whole one. */
class DeviceMemory {
 public:
  DeviceMemory(const CudaDriver& driver, int ordinal, std::size_t byte_size) : driver_(driver) {
    CUcontext context = nullptr;
    driver_.call("cuInit", 0u);
    driver_.call("cuDeviceGet", &device_, ordinal);
    driver_.call("cuDevicePrimaryCtxRetain", &context, device_);
    driver_.call("cuCtxSetCurrent", context);
    driver_.call("cuMemAlloc_v2", &pointer_, byte_size);
    driver_.call("cuMemsetD8_v2", pointer_, static_cast<unsigned char>(0), byte_size);
  }

  ~DeviceMemory() {
    driver_.call("cuMemFree_v2", pointer_);
    driver_.call("cuDevicePrimaryCtxRelease_v2", device_);
  }

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /** The 64 bytes by which another process opens this memory. */
  std::string handle() const {
    CUipcMemHandle handle;
    driver_.call("cuIpcGetMemHandle", &handle, pointer_);
    return {handle.reserved, sizeof handle.reserved};
  }

  // A handle carries no order. These copies from and to pageable memory are done when they return; after work
  // on a stream of your own, synchronise it before you tell anybody.

  void write(std::size_t offset, const std::string& bytes) const {
    driver_.call("cuMemcpyHtoD_v2", pointer_ + offset, static_cast<const void*>(bytes.data()), bytes.size());
  }

  std::string read(std::size_t offset, std::size_t byte_size) const {
    std::string bytes(byte_size, '\0');
    driver_.call("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), pointer_ + offset, byte_size);
    return bytes;
  }

 private:
  const CudaDriver& driver_;
  CUdevice device_ = 0;
  CUdeviceptr pointer_ = 0;
};
