#include <thread>

#include "check.h"
#include "exporter.h"

TEST("Contexts stack, and each thread has a stack of its own", "CUDASHM_EMULATED_DEVICE_COUNT=2") {
  const CUcontext first = use_device(0);
  const CUcontext second = use_device(1);
  CUcontext context = nullptr;
  CUdevice device = -1;
  CHECK_OK(cu().cuCtxGetDevice(&device));
  CHECK_EQUAL(device, 1);
  std::thread([] {
    CUcontext none = nullptr;
    CUdevice nowhere = -1;
    CHECK_OK(cu().cuCtxGetCurrent(&none));
    CHECK(none == nullptr);
    CHECK_EQUAL(cu().cuCtxGetDevice(&nowhere), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQUAL(cu().cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  CHECK_OK(cu().cuCtxPopCurrent_v2(&context));
  CHECK(context == second);
  CHECK_OK(cu().cuCtxGetCurrent(&context));
  CHECK(context == first);
  CHECK_OK(cu().cuCtxSynchronize());
  CHECK_OK(cu().cuCtxPopCurrent_v2(nullptr));
  CHECK_EQUAL(cu().cuCtxPopCurrent_v2(&context), CUDA_ERROR_INVALID_CONTEXT);
}

TEST("cuCtxSetCurrent replaces the top, and null takes it away", "CUDASHM_EMULATED_DEVICE_COUNT=2") {
  const CUcontext first = use_device(0);
  const CUcontext second = use_device(1);
  CUcontext context = nullptr;
  CHECK_OK(cu().cuCtxSetCurrent(first));
  CHECK_OK(cu().cuCtxSetCurrent(nullptr));
  CHECK_OK(cu().cuCtxGetCurrent(&context));
  CHECK(context == first);
  CHECK_OK(cu().cuCtxSetCurrent(nullptr));
  CHECK_OK(cu().cuCtxSetCurrent(second));
  CHECK_OK(cu().cuCtxGetCurrent(&context));
  CHECK(context == second);
  CHECK_EQUAL(cu().cuCtxPushCurrent_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cu().cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)), CUDA_ERROR_INVALID_CONTEXT);
}

TEST("The primary context lives until its last release, and takes memory and mappings with it") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(4096, "shared");
  const CUcontext context = use_device();
  CUcontext again = nullptr;
  CHECK_OK(cu().cuDevicePrimaryCtxRetain(&again, 0));
  CHECK(again == context);
  const CUdeviceptr own = allocate(4096);
  CUdeviceptr imported = 0;
  CUstream stream = nullptr;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&imported, handle, 1));
  CHECK_OK(cu().cuStreamCreate(&stream, 0));
  CHECK_OK(cu().cuDevicePrimaryCtxRelease_v2(0));
  char byte = 0;
  CHECK_OK(cu().cuMemcpyDtoH_v2(&byte, imported, 1));
  CHECK_EQUAL(byte, 's');

  unsigned flags = 0;
  int active = -1;
  CHECK_OK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK_EQUAL(active, 1);
  CHECK_OK(cu().cuDevicePrimaryCtxRelease_v2(0));
  CHECK_OK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK_EQUAL(active, 0);
  for (const char* name : {"allocations", "imports", "streams", "contexts"}) CHECK_EQUAL(gauge(name), uint64_t{0});
  CHECK_EQUAL(cu().cuMemcpyDtoH_v2(&byte, imported, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK_EQUAL(cu().cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);

  CHECK_OK(cu().cuDevicePrimaryCtxRetain(&again, 0));
  CHECK_EQUAL(cu().cuMemcpyDtoH_v2(&byte, imported, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cu().cuMemFree_v2(own), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cu().cuIpcCloseMemHandle(imported), CUDA_ERROR_INVALID_VALUE);
}

TEST("A reset empties the primary context and leaves its retains to be released") {
  const CUcontext context = use_device();
  allocate(64);
  unsigned version = 0;
  CHECK_OK(cu().cuCtxGetApiVersion(context, &version));
  CHECK_EQUAL(version, 3020U);
  CHECK_OK(cu().cuDevicePrimaryCtxReset_v2(0));
  CHECK_EQUAL(gauge("allocations"), uint64_t{0});
  CHECK_EQUAL(cu().cuCtxGetApiVersion(context, &version), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_OK(cu().cuDevicePrimaryCtxRelease_v2(0));
}

TEST("Flags of the primary context are kept") {
  CHECK_OK(cu().cuInit(0));
  CHECK_OK(cu().cuDevicePrimaryCtxSetFlags_v2(0, 4));
  use_device();
  unsigned flags = 0;
  int active = 0;
  CHECK_OK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK_EQUAL(flags, 4U);
  CHECK_OK(cu().cuCtxGetFlags(&flags));
  CHECK_EQUAL(flags, 4U);
}

TEST("A created context is current at once and can be destroyed, a primary one cannot") {
  const CUcontext primary = use_device();
  CUcontext created = nullptr;
  CUcontext current = nullptr;
  CHECK_OK(cu().cuCtxCreate_v2(&created, 0, 0));
  CHECK_OK(cu().cuCtxGetCurrent(&current));
  CHECK(current == created && created != primary);
  allocate(64);
  CHECK_OK(cu().cuCtxDestroy_v2(created));
  CHECK_EQUAL(gauge("allocations"), uint64_t{0});
  CHECK_OK(cu().cuCtxGetCurrent(&current));
  CHECK(current == primary);
  CHECK_EQUAL(cu().cuCtxDestroy_v2(created), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cu().cuCtxDestroy_v2(primary), CUDA_ERROR_INVALID_CONTEXT);
}

TEST("A stream belongs to a context and is checked wherever it is named") {
  use_device();
  const CUdeviceptr pointer = allocate(64);
  CUstream stream = nullptr;
  CHECK_OK(cu().cuStreamCreate(&stream, 1));
  CHECK_OK(cu().cuMemcpyHtoDAsync_v2(pointer, "ordered", 7, stream));
  CHECK_OK(cu().cuStreamQuery(stream));
  CHECK_OK(cu().cuStreamSynchronize(stream));
  CHECK_OK(cu().cuStreamSynchronize(nullptr));
  CHECK_OK(cu().cuStreamDestroy_v2(stream));
  CHECK_EQUAL(cu().cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQUAL(cu().cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQUAL(cu().cuMemsetD8Async(pointer, 0, 1, stream), CUDA_ERROR_INVALID_HANDLE);
}
