#include "fake_driver.h"

#include <cstring>

using namespace cudashm;

namespace {

FakeDriver* driver = new FakeDriver;
unsigned char memory[kFakeBytes];
thread_local int current_contexts = 0;

void RequireContext() {
  if (current_contexts != 1) ++driver->calls_without_context;
}

void* At(CUdeviceptr pointer) {
  return reinterpret_cast<void*>(pointer);
}

DriverApi MakeApi() {
  DriverApi api{};
  api.get_error_name = [](CUresult, const char** name) -> CUresult {
    *name = "FAKE_ERROR";
    return 0;
  };
  api.device_primary_ctx_retain = [](CUcontext* context, CUdevice) -> CUresult {
    ++driver->retains;
    *context = reinterpret_cast<CUcontext>(&memory);
    return driver->retain_result;
  };
  api.device_primary_ctx_release = [](CUdevice) -> CUresult {
    if (driver->during_release) driver->during_release();
    // Who saw it counted may forget this driver.
    const int result = driver->release_result;
    ++driver->releases;
    return result;
  };
  api.ctx_push_current = [](CUcontext) -> CUresult {
    ++current_contexts;
    return 0;
  };
  api.ctx_pop_current = [](CUcontext*) -> CUresult {
    --current_contexts;
    return 0;
  };
  api.mem_alloc = [](CUdeviceptr* pointer, std::size_t) -> CUresult {
    RequireContext();
    ++driver->allocations;
    *pointer = reinterpret_cast<CUdeviceptr>(&memory);
    return 0;
  };
  api.mem_free = [](CUdeviceptr) -> CUresult {
    RequireContext();
    if (driver->close_result == 0) ++driver->frees;
    return driver->close_result;
  };
  api.mem_get_address_range = [](CUdeviceptr* base, std::size_t* bytes, CUdeviceptr pointer) -> CUresult {
    RequireContext();
    *base = pointer;
    *bytes = kFakeBytes;
    return driver->size_result;
  };
  api.memcpy_host_to_device = [](CUdeviceptr to, const void* from, std::size_t bytes) -> CUresult {
    RequireContext();
    ++driver->copies;
    if (driver->during_copy) driver->during_copy();
    std::memcpy(At(to), from, bytes);
    return driver->copy_result;
  };
  api.memcpy_device_to_host = [](void* to, CUdeviceptr from, std::size_t bytes) -> CUresult {
    RequireContext();
    ++driver->copies;
    if (driver->during_copy) driver->during_copy();
    std::memcpy(to, At(from), bytes);
    return driver->copy_result;
  };
  api.stream_synchronize = [](CUstream) -> CUresult {
    RequireContext();
    return 0;
  };
  api.ipc_get_mem_handle = [](CUipcMemHandle* handle, CUdeviceptr) -> CUresult {
    RequireContext();
    std::memset(handle->reserved, 7, sizeof handle->reserved);
    return 0;
  };
  api.ipc_open_mem_handle = [](CUdeviceptr* pointer, CUipcMemHandle, unsigned flags) -> CUresult {
    RequireContext();
    if (flags != kIpcLazyEnablePeerAccess) return 1;
    if (driver->during_open) driver->during_open();
    if (driver->open_result == 0) ++driver->opens;
    *pointer = reinterpret_cast<CUdeviceptr>(&memory);
    return driver->open_result;
  };
  api.ipc_close_mem_handle = [](CUdeviceptr) -> CUresult {
    RequireContext();
    if (driver->close_result == 0) ++driver->closes;
    return driver->close_result;
  };
  return api;
}

}  // namespace

FakeDriver& ResetFakeDriver() {
  delete driver;
  driver = new FakeDriver;
  std::memset(memory, 0, sizeof memory);
  return *driver;
}

const DriverApi& FakeDriverApi() {
  static const DriverApi& api = *new DriverApi(MakeApi());
  return api;
}

unsigned char* FakeMemory() {
  return memory;
}
