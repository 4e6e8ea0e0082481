#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "check.h"
#include "exporter.h"

namespace {

/** How a child ends that reads one byte at the address. */
int signal_of_read(CUdeviceptr pointer) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*reinterpret_cast<volatile char*>(pointer) == 0 ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST("An allocation is zeroed, at least 1 byte, and exactly as long as was asked for") {
  use_device();
  CUdeviceptr pointer = 0;
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  pointer = allocate(5001);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  CHECK_OK(cu().cuMemGetAddressRange_v2(&base, &bytes, pointer + 5000));
  CHECK_EQUAL(base, pointer);
  CHECK_EQUAL(bytes, size_t{5001});
  CHECK_OK(cu().cuMemGetAddressRange_v2(nullptr, nullptr, pointer));
  CHECK_EQUAL(cu().cuMemGetAddressRange_v2(&base, &bytes, pointer + 5001), CUDA_ERROR_NOT_FOUND);
  char last = 1;
  CHECK_OK(cu().cuMemcpyDtoH_v2(&last, pointer + 5000, 1));
  CHECK_EQUAL(last, 0);
}

TEST("A device pointer that the CPU touches is a crash, own memory and imported alike") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  CUdeviceptr imported = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&imported, handle, 1));
  CHECK_EQUAL(signal_of_read(allocate(64)), SIGSEGV);
  CHECK_EQUAL(signal_of_read(imported), SIGSEGV);
}

TEST("Memory is limited per device and comes back", "CUDASHM_EMULATED_DEVICE_COUNT=2",
     "CUDASHM_EMULATED_MEMORY_BYTES=1000") {
  use_device(0);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CUdeviceptr pointer = 0;
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 1001), CUDA_ERROR_OUT_OF_MEMORY);
  const CUdeviceptr first = allocate(600);
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 401), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_OK(cu().cuMemGetInfo_v2(&free_bytes, &total_bytes));
  CHECK_EQUAL(free_bytes, size_t{400});
  CHECK_EQUAL(total_bytes, size_t{1000});
  allocate(400);
  CHECK_OK(cu().cuMemFree_v2(first));
  CHECK_OK(cu().cuMemGetInfo_v2(&free_bytes, &total_bytes));
  CHECK_EQUAL(free_bytes, size_t{600});
  use_device(1);
  allocate(1000);
}

TEST("Sizes near 2^64 are refused as out of memory") {
  use_device();
  CUdeviceptr pointer = 0;
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2}) {
    CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, bytes), CUDA_ERROR_OUT_OF_MEMORY);
  }
}

TEST("What a device's mapped imports hold is not free, and is again once they are closed",
     "CUDASHM_EMULATED_MEMORY_BYTES=1000") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(300, "text");
  use_device();
  CUdeviceptr pointer = 0;
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&pointer, handle, 1));
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&pointer, handle, 1));
  CHECK_OK(cu().cuMemGetInfo_v2(&free_bytes, &total_bytes));
  CHECK_EQUAL(free_bytes, size_t{700});
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_OK(cu().cuMemGetInfo_v2(&free_bytes, &total_bytes));
  CHECK_EQUAL(free_bytes, size_t{1000});
}

TEST("Only what cuMemAlloc gave can be freed, and once") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  const CUdeviceptr pointer = allocate(64);
  CUdeviceptr imported = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&imported, handle, 1));
  CHECK_EQUAL(cu().cuMemFree_v2(imported), CUDA_ERROR_INVALID_VALUE);
  CHECK_EQUAL(cu().cuMemFree_v2(pointer + 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cu().cuMemFree_v2(pointer));
  CHECK_EQUAL(cu().cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
}

TEST("An allocation without a context, or without file descriptors, is refused with the reason") {
  CUdeviceptr pointer = 0;
  CHECK_OK(cu().cuInit(0));
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), CUDA_ERROR_INVALID_CONTEXT);
  use_device();
  rlimit files{};
  CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
  const rlimit none{0, files.rlim_max};
  CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
  CHECK(std::strstr(cu().cudashm_emulated_reason(), "ulimit -n") != nullptr);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CHECK_OK(cu().cuMemGetInfo_v2(&free_bytes, &total_bytes));
  CHECK_EQUAL(free_bytes, total_bytes);
}

TEST("Nobody can shorten or lengthen the file behind an allocation") {
  use_device();
  allocate(64);
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != "/memfd:cudashm-emulated (deleted)") continue;
    ++found;
    const int file = open(entry.path().c_str(), O_RDWR);
    CHECK(ftruncate(file, 0) == -1 && errno == EPERM);
    CHECK(ftruncate(file, 1 << 30) == -1 && errno == EPERM);
  }
  CHECK_EQUAL(found, 1);
}

TEST("Host memory is the driver's too: it can be asked about, copied as a device pointer, and freed") {
  use_device();
  void* memory = nullptr;
  unsigned type = 0;
  CUdeviceptr alias = 0;
  CHECK_OK(cu().cuMemHostAlloc(&memory, 64, 0));
  CHECK_OK(cu().cuPointerGetAttribute(&type, 2, reinterpret_cast<CUdeviceptr>(memory)));
  CHECK_EQUAL(type, 1U);
  CHECK_OK(cu().cuMemHostGetDevicePointer_v2(&alias, memory, 0));
  CHECK_OK(cu().cuMemsetD8_v2(alias, 'h', 64));
  CHECK_EQUAL(static_cast<char*>(memory)[63], 'h');
  CHECK_OK(cu().cuMemFreeHost(memory));
  CHECK_EQUAL(cu().cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cu().cuMemAllocHost_v2(&memory, 1));
  CHECK_OK(cu().cuMemFreeHost(memory));
}

TEST("A device pointer says its range, kind, device and whether it can be exported") {
  Exporter exporter({"CUDASHM_EMULATED_DEVICE_COUNT=2"});
  const CUipcMemHandle handle = exporter.share(300, "text");
  const CUcontext context = use_device();
  const CUdeviceptr own = allocate(200);
  CUdeviceptr imported = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&imported, handle, 1));

  CUcontext of = nullptr;
  unsigned type = 0;
  int ordinal = -1;
  CUdeviceptr start = 0;
  size_t size = 0;
  unsigned char exportable = 9;
  int attributes[] = {1, 2, 9, 11, 12, 10};
  void* values[] = {&of, &type, &ordinal, &start, &size, &exportable};
  CHECK_OK(cu().cuPointerGetAttributes(6, attributes, values, own + 7));
  CHECK(of == context);
  CHECK_EQUAL(type, 2U);
  CHECK_EQUAL(ordinal, 0);
  CHECK_EQUAL(start, own);
  CHECK_EQUAL(size, size_t{200});
  CHECK_EQUAL(exportable, 1);
  CHECK_OK(cu().cuPointerGetAttribute(&size, 12, imported));
  CHECK_EQUAL(size, size_t{300});
  CHECK_OK(cu().cuPointerGetAttribute(&exportable, 10, imported));
  CHECK_EQUAL(exportable, 0);
  int local = 0;
  CHECK_EQUAL(cu().cuPointerGetAttribute(&type, 2, reinterpret_cast<CUdeviceptr>(&local)), CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cu().cuPointerGetAttributes(6, attributes, values, reinterpret_cast<CUdeviceptr>(&local)));
  CHECK_EQUAL(type, 0U);
  CHECK_EQUAL(ordinal, -2);
}
