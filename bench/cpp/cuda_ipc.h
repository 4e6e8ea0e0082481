#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

// The driver's calls that an open and a close take, through the library of the given path.
using CUresult = int;
using CUdeviceptr = unsigned long long;
using CUcontext = void*;
struct CUipcMemHandle {
  char reserved[64];
};

/** Opens and closes handles on device 0 as the addon does: the context is entered for each. Throws what fails. */
class CudaIpc {
 public:
  explicit CudaIpc(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    resolve(push_, "cuCtxPushCurrent_v2");
    resolve(pop_, "cuCtxPopCurrent_v2");
    resolve(open_, "cuIpcOpenMemHandle_v2");
    resolve(size_, "cuMemGetAddressRange_v2");
    resolve(close_, "cuIpcCloseMemHandle");
    CUresult (*init)(unsigned) = nullptr;
    CUresult (*retain)(CUcontext*, int) = nullptr;
    resolve(init, "cuInit");
    resolve(retain, "cuDevicePrimaryCtxRetain");
    check(init(0), "cuInit");
    check(retain(&context_, 0), "cuDevicePrimaryCtxRetain");
  }

  CUdeviceptr open(const CUipcMemHandle& handle, std::size_t& byte_size) const {
    constexpr unsigned lazy_enable_peer_access = 1;
    CUdeviceptr pointer = 0;
    CUdeviceptr base = 0;
    enter();
    check(open_(&pointer, handle, lazy_enable_peer_access), "cuIpcOpenMemHandle");
    check(size_(&base, &byte_size, pointer), "cuMemGetAddressRange");
    leave();
    return pointer;
  }

  void close(CUdeviceptr pointer) const {
    enter();
    check(close_(pointer), "cuIpcCloseMemHandle");
    leave();
  }

 private:
  void enter() const { check(push_(context_), "cuCtxPushCurrent"); }

  void leave() const {
    CUcontext popped = nullptr;
    check(pop_(&popped), "cuCtxPopCurrent");
  }

  static void check(CUresult result, const char* call) {
    if (result != 0) throw std::runtime_error(std::string(call) + ": " + std::to_string(result));
  }

  template <typename Function>
  void resolve(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
  }

  void* library_;
  CUcontext context_ = nullptr;
  CUresult (*push_)(CUcontext) = nullptr;
  CUresult (*pop_)(CUcontext*) = nullptr;
  CUresult (*open_)(CUdeviceptr*, CUipcMemHandle, unsigned) = nullptr;
  CUresult (*size_)(CUdeviceptr*, std::size_t*, CUdeviceptr) = nullptr;
  CUresult (*close_)(CUdeviceptr) = nullptr;
};
