#include "driver.h"

#include <dlfcn.h>

#include "check.h"

const DriverLibrary& cu() {
  static const DriverLibrary instance = [] {
    DriverLibrary driver;
    driver.library = dlopen(std::getenv("CUDASHM_TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    if (driver.library == nullptr) fail(__FILE__, __LINE__, dlerror());
#define X(name, asked, version) driver.name = reinterpret_cast<decltype(&::name)>(dlsym(driver.library, #name));
    CUDASHM_EMULATED_FUNCTIONS(X)
    X(cudashm_emulated_counter, , )
    X(cudashm_emulated_gauge, , )
    X(cudashm_emulated_reason, , )
#undef X
    return driver;
  }();
  return instance;
}

CUcontext use_device(CUdevice device) {
  CUcontext context = nullptr;
  CHECK_OK(cu().cuInit(0));
  CHECK_OK(cu().cuDevicePrimaryCtxRetain(&context, device));
  CHECK_OK(cu().cuCtxPushCurrent_v2(context));
  return context;
}

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr pointer = 0;
  CHECK_OK(cu().cuMemAlloc_v2(&pointer, bytes));
  return pointer;
}

uint64_t gauge(const char* name) {
  uint64_t value = 0;
  CHECK_EQUAL(cu().cudashm_emulated_gauge(name, &value), 0);
  return value;
}

uint64_t call_count(const char* function) {
  uint64_t calls = 0;
  CHECK_EQUAL(cu().cudashm_emulated_counter(function, &calls, nullptr), 0);
  return calls;
}

uint64_t success_count(const char* function) {
  uint64_t successes = 0;
  CHECK_EQUAL(cu().cudashm_emulated_counter(function, nullptr, &successes), 0);
  return successes;
}
