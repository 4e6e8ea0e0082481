#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "check.h"
#include "exporter.h"

TEST("Before cuInit a call is not initialised, except those that need no device") {
  int value = 0;
  const char* text = nullptr;
  CHECK_EQUAL(cu().cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
  CHECK_OK(cu().cuDriverGetVersion(&value));
  CHECK_EQUAL(value, 12080);
  CHECK_OK(cu().cuGetErrorName(201, &text));
  CHECK(std::strcmp(text, "CUDA_ERROR_INVALID_CONTEXT") == 0);
  CHECK_OK(cu().cuGetErrorString(201, &text));
  CHECK(std::strcmp(text, "invalid device context") == 0);
  CHECK_EQUAL(cu().cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
}

TEST("cuInit accepts no flags and may be called again") {
  CHECK_EQUAL(cu().cuInit(1), CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cu().cuInit(0));
  CHECK_OK(cu().cuInit(0));
}

TEST("cuInit without a device is NO_DEVICE", "CUDASHM_EMULATED_DEVICE_COUNT=0") {
  CHECK_EQUAL(cu().cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST("CUDA_VISIBLE_DEVICES can hide every device", "CUDA_VISIBLE_DEVICES=") {
  CHECK_EQUAL(cu().cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST("The driver version is the one asked for, and newer functions are not found",
     "CUDASHM_EMULATED_DRIVER_VERSION=11010") {
  int version = 0;
  void* address = nullptr;
  CHECK_OK(cu().cuDriverGetVersion(&version));
  CHECK_EQUAL(version, 11010);
  CHECK_OK(cu().cuGetProcAddress("cuDeviceGetUuid", &address, 12000, 0));
  CHECK(address == reinterpret_cast<void*>(cu().cuDeviceGetUuid));
}

TEST("A process forked after cuInit is told that it is not initialised") {
  use_device();
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    _exit(cu().cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQUAL(status, 0);
}

TEST("A call from a destructor older than cuInit finds the driver shut down") {
  cu();
  std::atexit([] {
    int count = 0;
    _exit(cu().cuDeviceGetCount(&count) == CUDA_ERROR_DEINITIALIZED ? 0 : 1);
  });
  use_device();
  std::exit(1);
}

TEST("Every function is exported, and no name of the 32-bit era") {
#define X(name, asked, version) CHECK(cu().name != nullptr);
  CUDASHM_EMULATED_FUNCTIONS(X)
#undef X
  for (const char* old : {"cuMemAlloc", "cuMemFree", "cuMemcpyHtoD", "cuCtxPushCurrent", "cuDevicePrimaryCtxRelease"}) {
    CHECK(dlsym(cu().library, old) == nullptr);
  }
  CHECK(dlsym(cu().library, "cudashm_emulated_driver") != nullptr);
}

TEST("cuGetProcAddress finds the newest form that the version allows") {
  void* address = nullptr;
  int status = -1;
  CHECK_OK(cu().cuGetProcAddress_v2("cuDeviceGetUuid", &address, 9020, 0, &status));
  CHECK(address == reinterpret_cast<void*>(cu().cuDeviceGetUuid));
  CHECK_OK(cu().cuGetProcAddress_v2("cuDeviceGetUuid", &address, 12000, 0, &status));
  CHECK(address == reinterpret_cast<void*>(cu().cuDeviceGetUuid_v2));
  CHECK_EQUAL(status, 0);
  CHECK_OK(cu().cuGetProcAddress_v2("cuMemAlloc", &address, 3020, 0, nullptr));
  CHECK(address == reinterpret_cast<void*>(cu().cuMemAlloc_v2));
  CHECK_OK(cu().cuGetProcAddress("cuIpcOpenMemHandle", &address, 12000, 0));
  CHECK(address == reinterpret_cast<void*>(cu().cuIpcOpenMemHandle_v2));
}

TEST("An unknown name is success with a null address and status 1, a too new one status 2") {
  int here = 0;
  void* address = &here;
  int status = -1;
  CHECK_OK(cu().cuGetProcAddress_v2("cuGraphLaunch", &address, 12000, 0, &status));
  CHECK(address == nullptr);
  CHECK_EQUAL(status, 1);
  address = &here;
  CHECK_OK(cu().cuGetProcAddress_v2("cuMemAlloc", &address, 2000, 0, &status));
  CHECK(address == nullptr);
  CHECK_EQUAL(status, 2);
}

TEST("A hidden function is gone from dlsym and from cuGetProcAddress, the others stay",
     "CUDASHM_EMULATED_HIDE=cuIpcOpenMemHandle_v2,cuDeviceGetUuid_v2") {
  void* address = nullptr;
  CHECK(cu().cuIpcOpenMemHandle_v2 == nullptr);
  CHECK(cu().cuDeviceGetUuid_v2 == nullptr);
  CHECK(cu().cuIpcOpenMemHandle != nullptr);
  CHECK_OK(cu().cuGetProcAddress_v2("cuDeviceGetUuid", &address, 12000, 0, nullptr));
  CHECK(address == reinterpret_cast<void*>(cu().cuDeviceGetUuid));
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "fallback");
  CUdeviceptr pointer = 0;
  use_device();
  CHECK_OK(cu().cuIpcOpenMemHandle(&pointer, handle, 1));
}

TEST("Variables that cannot be used are refused by cuInit with the variable's name", "CUDASHM_EMULATED_FAULTS=cuFoo=1") {
  CHECK_EQUAL(cu().cuInit(0), CUDA_ERROR_INVALID_VALUE);
  CHECK(std::strstr(cu().cudashm_emulated_reason(), "CUDASHM_EMULATED_FAULTS: 'cuFoo=1'") != nullptr);
  int count = 0;
  CHECK_EQUAL(cu().cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}
