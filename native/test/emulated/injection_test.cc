#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "check.h"
#include "exporter.h"

TEST("A fault on the k-th call leaves the others alone", "CUDASHM_EMULATED_FAULTS=cuMemAlloc_v2@2=2,cuMemAlloc_v2@3=46") {
  use_device();
  CUdeviceptr pointer = 0;
  CHECK_OK(cu().cuMemAlloc_v2(&pointer, 64));
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), 2);
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), 46);
  CHECK_OK(cu().cuMemAlloc_v2(&pointer, 64));
  CHECK_EQUAL(gauge("allocations"), uint64_t{2});
  CHECK_EQUAL(call_count("cuMemAlloc_v2"), uint64_t{4});
  CHECK_EQUAL(success_count("cuMemAlloc_v2"), uint64_t{2});
}

TEST("A fault without a call number is on every call, cuInit included", "CUDASHM_EMULATED_FAULTS=cuInit=803") {
  CHECK_EQUAL(cu().cuInit(0), 803);
  CHECK_EQUAL(cu().cuInit(0), 803);
  CHECK(std::strcmp(cu().cudashm_emulated_reason(), "forced by CUDASHM_EMULATED_FAULTS") == 0);
}

TEST("A number that is no CUDA result cannot be forced", "CUDASHM_EMULATED_FAULTS=cuIpcCloseMemHandle@1=1000") {
  CHECK_EQUAL(cu().cuInit(0), CUDA_ERROR_INVALID_VALUE);
}

TEST("A forced failure of a close leaves the mapping as it was", "CUDASHM_EMULATED_FAULTS=cuIpcCloseMemHandle@1=205") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  CUdeviceptr pointer = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&pointer, handle, 1));
  CHECK_EQUAL(cu().cuIpcCloseMemHandle(pointer), 205);
  CHECK_EQUAL(gauge("imports"), uint64_t{1});
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_EQUAL(gauge("imports"), uint64_t{0});
}

TEST("After a sticky fault every later call answers it", "CUDASHM_EMULATED_FAULTS=cuMemAlloc_v2@1=700") {
  use_device();
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  int count = 0;
  const char* name = nullptr;
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), 700);
  CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), 700);
  CHECK_EQUAL(cu().cuCtxGetCurrent(&context), 700);
  CHECK_EQUAL(cu().cuDeviceGetCount(&count), 700);
  CHECK_OK(cu().cuGetErrorName(700, &name));
  CHECK(std::strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
}

namespace {

/** What the tests' CUDASHM_EMULATED_FAULTS_FILE leads to. */
constexpr int faults_file = 900;

void put_faults(const std::string& list) {
  const int file = memfd_create("faults", 0);
  CHECK(write(file, list.data(), list.size()) == static_cast<ssize_t>(list.size()));
  CHECK(dup2(file, faults_file) == faults_file);
  close(file);
}

}  // namespace

TEST("A file of faults is read again when it changes, and calls are counted from then on",
     "CUDASHM_EMULATED_FAULTS_FILE=/proc/self/fd/900") {
  CUdeviceptr pointer = 0;
  use_device();
  CHECK_OK(cu().cuMemAlloc_v2(&pointer, 64));
  for (int round = 0; round < 3; ++round) {
    put_faults("cuMemAlloc_v2@2=2,cuMemFree_v2=1\n");
    CHECK_OK(cu().cuMemAlloc_v2(&pointer, 64));
    CHECK_EQUAL(cu().cuMemAlloc_v2(&pointer, 64), 2);
    CHECK(std::strcmp(cu().cudashm_emulated_reason(), "forced by CUDASHM_EMULATED_FAULTS_FILE") == 0);
    CHECK_OK(cu().cuMemAlloc_v2(&pointer, 64));
    CHECK_EQUAL(cu().cuMemFree_v2(pointer), 1);
  }
  close(faults_file);
  CHECK_OK(cu().cuMemFree_v2(pointer));
}

TEST("While a file of faults cannot be used every call is refused",
     "CUDASHM_EMULATED_FAULTS_FILE=/proc/self/fd/900") {
  put_faults("cuMemAlloc_v2@0=2");
  CHECK_EQUAL(cu().cuInit(0), CUDA_ERROR_INVALID_VALUE);
  put_faults("");
  use_device();
}

TEST("An open that never returns keeps no other call waiting",
     "CUDASHM_EMULATED_DELAYS=cuIpcOpenMemHandle_v2@1=3600000") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  const CUcontext context = use_device();
  std::thread([&] {
    CUdeviceptr pointer = 0;
    cu().cuCtxPushCurrent_v2(context);
    cu().cuIpcOpenMemHandle_v2(&pointer, handle, 1);
    fail(__FILE__, __LINE__, "the delayed call came back");
  }).detach();
  while (call_count("cuIpcOpenMemHandle_v2") == 0) std::this_thread::yield();
  CUdeviceptr pointer = 0;
  char text[4];
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&pointer, handle, 1));
  CHECK_OK(cu().cuMemcpyDtoH_v2(text, pointer, 4));
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_OK(cu().cuMemFree_v2(allocate(64)));
  CHECK_OK(cu().cuDevicePrimaryCtxRelease_v2(0));
  CHECK_EQUAL(success_count("cuIpcOpenMemHandle_v2"), uint64_t{1});
  _exit(0);
}

TEST("A delay holds the call for its time", "CUDASHM_EMULATED_DELAYS=cuMemAlloc_v2@2=60") {
  use_device();
  allocate(64);
  const auto start = std::chrono::steady_clock::now();
  allocate(64);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(60));
}

TEST("The log has one line a call, with the reason of a refusal and never a handle or a pointer",
     "CUDASHM_EMULATED_LOG=/proc/self/fd/900") {
  char path[] = "/tmp/cudashm-emulated-log-XXXXXX";
  const int file = mkstemp(path);
  CHECK(dup2(file, 900) == 900);
  Exporter exporter;
  CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  CUdeviceptr pointer = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&pointer, handle, 1));
  exporter.kill_and_reap();
  CUdeviceptr none = 0;
  CHECK_EQUAL(cu().cuIpcOpenMemHandle_v2(&none, handle, 1), CUDA_ERROR_INVALID_VALUE);

  std::ifstream log(path);
  std::vector<std::string> lines;
  std::string all;
  for (std::string line; std::getline(log, line);) {
    lines.push_back(line);
    all += line + "\n";
  }
  unlink(path);
  CHECK_EQUAL(lines.size(), size_t{5});
  const char* functions[] = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuIpcOpenMemHandle_v2",
                             "cuIpcOpenMemHandle_v2"};
  for (size_t index = 0; index < lines.size(); ++index) {
    std::istringstream words(lines[index]);
    long pid = 0;
    long tid = 0;
    std::string function;
    int result = -1;
    long long microseconds = -1;
    words >> pid >> tid >> function >> result >> microseconds;
    CHECK_EQUAL(pid, static_cast<long>(getpid()));
    CHECK_EQUAL(tid, static_cast<long>(gettid()));
    CHECK(function == functions[index]);
    CHECK_EQUAL(result, index == 4 ? 1 : 0);
    CHECK(microseconds >= 0);
  }
  CHECK(lines[4].ends_with(" the exporter has exited or freed the memory"));
  char address[32];
  std::snprintf(address, sizeof address, "%llx", pointer);
  CHECK(all.find(address) == std::string::npos);
  CHECK(all.find(std::to_string(pointer)) == std::string::npos);
  CHECK(all.find(to_hex(handle.reserved + 40, 8)) == std::string::npos);
}

TEST("A log that cannot be written is refused by cuInit", "CUDASHM_EMULATED_LOG=/nowhere/at/all.log") {
  CHECK_EQUAL(cu().cuInit(0), CUDA_ERROR_INVALID_VALUE);
}

TEST("Counters and gauges know their names only") {
  uint64_t value = 0;
  CHECK_EQUAL(cu().cudashm_emulated_counter("cuNothing", &value, &value), 1);
  CHECK_EQUAL(cu().cudashm_emulated_gauge("nothing", &value), 1);
  use_device();
  CHECK_EQUAL(call_count("cuInit"), uint64_t{1});
  CHECK_EQUAL(gauge("contexts"), uint64_t{1});
}
