#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "../../emulated/ipc_handle.h"
#include "check.h"
#include "exporter.h"

using cudashm::emulated::decode_handle;
using cudashm::emulated::encode_handle;
using cudashm::emulated::IpcLocation;

namespace {

constexpr unsigned lazy = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;

CUresult open_result(const CUipcMemHandle& handle) {
  CUdeviceptr pointer = 0;
  return cu().cuIpcOpenMemHandle_v2(&pointer, handle, lazy);
}

CUdeviceptr open(const CUipcMemHandle& handle) {
  CUdeviceptr pointer = 0;
  CHECK_OK(cu().cuIpcOpenMemHandle_v2(&pointer, handle, lazy));
  return pointer;
}

std::string text_at(CUdeviceptr pointer, size_t bytes) {
  std::string text(bytes, '\0');
  CHECK_OK(cu().cuMemcpyDtoH_v2(text.data(), pointer, bytes));
  return text;
}

bool same(const CUipcMemHandle& a, const CUipcMemHandle& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

size_t entries(const char* directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

size_t memfds(const std::string& directory) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) == "/memfd:cudashm-emulated (deleted)") ++count;
  }
  return count;
}

}  // namespace

TEST("Two processes see each other's bytes through one handle") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(5001, "from-exporter");
  use_device();
  const CUdeviceptr pointer = open(handle);
  CHECK(text_at(pointer, 13) == "from-exporter");
  CHECK_OK(cu().cuMemcpyHtoD_v2(pointer + 4990, "to-exporter", 11));
  CHECK(exporter.ask("read 0 4990 11") == "to-exporter");
}

TEST("The importer gets the base and the exact size of the allocation, whatever offset was exported") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(5001, "base");
  CHECK(same(handle, handle_from_hex(exporter.ask("export 0 0"))));
  CHECK(same(handle, handle_from_hex(exporter.ask("export 0 5000"))));
  CHECK(!same(handle, exporter.share(5001, "other")));
  use_device();
  const CUdeviceptr pointer = open(handle);
  CHECK(text_at(pointer, 4) == "base");
  CUdeviceptr base = 0;
  size_t bytes = 0;
  CHECK_OK(cu().cuMemGetAddressRange_v2(&base, &bytes, pointer + 100));
  CHECK_EQUAL(base, pointer);
  CHECK_EQUAL(bytes, size_t{5001});
}

TEST("A handle starts with a text that no real handle has") {
  Exporter exporter;
  CHECK(std::memcmp(exporter.share(1, "").reserved, "CUDASHM-EMULATED", 16) == 0);
}

TEST("Opening in the exporting process is INVALID_CONTEXT") {
  use_device();
  CUipcMemHandle handle;
  const CUdeviceptr pointer = allocate(64);
  CHECK_OK(cu().cuIpcGetMemHandle(&handle, pointer));
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_INVALID_CONTEXT);
  CHECK_EQUAL(cu().cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_VALUE);
}

TEST("Open and close need a current context") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  CHECK_OK(cu().cuInit(0));
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_INVALID_CONTEXT);
  use_device();
  const CUdeviceptr pointer = open(handle);
  CHECK_OK(cu().cuCtxPopCurrent_v2(nullptr));
  CHECK_EQUAL(cu().cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_CONTEXT);
}

TEST("Close is refused for null, foreign and inner pointers, and after the last open is closed") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  const CUdeviceptr pointer = open(handle);
  for (const CUdeviceptr bad : {CUdeviceptr{0}, pointer + 1, allocate(64), ~CUdeviceptr{0}}) {
    CHECK_EQUAL(cu().cuIpcCloseMemHandle(bad), CUDA_ERROR_INVALID_VALUE);
  }
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_EQUAL(cu().cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_VALUE);
}

TEST("Re-opening gives the same pointer and counts") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  const CUdeviceptr pointer = open(handle);
  CHECK_EQUAL(open(handle), pointer);
  CHECK_EQUAL(gauge("imports"), uint64_t{1});
  CHECK_EQUAL(gauge("import_opens"), uint64_t{2});
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK(text_at(pointer, 4) == "text");
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_EQUAL(gauge("imports"), uint64_t{0});
}

TEST("An old driver answers ALREADY_MAPPED to a re-open", "CUDASHM_EMULATED_OLD_REOPEN=1") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  const CUdeviceptr pointer = open(handle);
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_ALREADY_MAPPED);
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  open(handle);
}

TEST("A second context of the same device is INVALID_HANDLE, and the first can still close") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  const CUcontext primary = use_device();
  const CUdeviceptr pointer = open(handle);
  CUcontext second = nullptr;
  CHECK_OK(cu().cuCtxCreate_v2(&second, 0, 0));
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_INVALID_HANDLE);
  CHECK_EQUAL(cu().cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cu().cuCtxSetCurrent(primary));
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
  CHECK_OK(cu().cuCtxSetCurrent(second));
  open(handle);
}

TEST("A handle is stale once the exporter has freed the memory; what is mapped stays") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  const CUdeviceptr pointer = open(handle);
  CHECK(exporter.ask("free 0") == "done");
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_INVALID_VALUE);
  const CUipcMemHandle newer = exporter.share(64, "new!");
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_INVALID_VALUE);
  CHECK(text_at(pointer, 4) == "text");
  CHECK(text_at(open(newer), 4) == "new!");
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
}

TEST("After SIGKILL of the exporter an open is refused and a mapping lives on") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  const CUdeviceptr pointer = open(handle);
  exporter.kill_and_reap();
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_INVALID_VALUE);
  CHECK(text_at(pointer, 4) == "text");
  CHECK_OK(cu().cuMemcpyHtoD_v2(pointer, "more", 4));
  CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
}

TEST("Shared memory has no name that could be left behind, only a descriptor in the exporter") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  open(handle);
  for (const std::string& process : {std::string("self"), std::to_string(exporter.pid())}) {
    std::ifstream maps("/proc/" + process + "/maps");
    int views = 0;
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with("/memfd:cudashm-emulated (deleted)")) ++views;
      CHECK(line.find("/dev/shm") == std::string::npos);
    }
    CHECK_EQUAL(views, 2);
  }
  CHECK_EQUAL(memfds("/proc/self/fd"), size_t{0});
  CHECK_EQUAL(memfds("/proc/" + std::to_string(exporter.pid()) + "/fd"), size_t{1});
}

TEST("Only memory that this process allocated can be exported") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  CUipcMemHandle out;
  void* host = nullptr;
  CHECK_OK(cu().cuMemHostAlloc(&host, 64, 0));
  for (const CUdeviceptr bad : {open(handle), CUdeviceptr{0}, reinterpret_cast<CUdeviceptr>(host)}) {
    CHECK_EQUAL(cu().cuIpcGetMemHandle(&out, bad), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST("Flags other than lazy peer access are INVALID_VALUE") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  CUdeviceptr pointer = 0;
  for (const unsigned flags : {0U, 2U, 3U, ~0U}) {
    CHECK_EQUAL(cu().cuIpcOpenMemHandle_v2(&pointer, handle, flags), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST("Every changed bit, zeros and random bytes are no handle") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  for (size_t bit = 0; bit < 512; ++bit) {
    CUipcMemHandle changed = handle;
    changed.reserved[bit / 8] = static_cast<char>(changed.reserved[bit / 8] ^ (1 << (bit % 8)));
    CHECK_EQUAL(open_result(changed), CUDA_ERROR_INVALID_VALUE);
  }
  CUipcMemHandle bytes{};
  CHECK_EQUAL(open_result(bytes), CUDA_ERROR_INVALID_VALUE);
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    for (char& byte : bytes.reserved) byte = static_cast<char>(random());
    if (round % 2 == 0) std::memcpy(bytes.reserved, handle.reserved, 56);
    CHECK_EQUAL(open_result(bytes), CUDA_ERROR_INVALID_VALUE);
  }
  CHECK_EQUAL(gauge("imports"), uint64_t{0});
  open(handle);
}

TEST("A forged handle reaches no file but the one whose nonce it knows") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  const IpcLocation good = *decode_handle(handle);
  const IpcLocation other = *decode_handle(exporter.share(64, "other"));
  use_device();
  open(encode_handle(good));

  IpcLocation forged = good;
  for (const int file : {0, 1, 2, 99, other.file, 2147483647}) {
    forged.file = file;
    CHECK_EQUAL(open_result(encode_handle(forged)), CUDA_ERROR_INVALID_VALUE);
  }
  forged = good;
  forged.start_time += 1;
  CHECK_EQUAL(open_result(encode_handle(forged)), CUDA_ERROR_INVALID_VALUE);
  forged = good;
  forged.pid = getppid();
  CHECK_EQUAL(open_result(encode_handle(forged)), CUDA_ERROR_INVALID_VALUE);
  for (const int pid : {0, -1, 2147483647}) {
    forged.pid = pid;
    CHECK_EQUAL(open_result(encode_handle(forged)), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST("A file made to look like an allocation is refused unless it is one in every respect") {
  Exporter exporter;
  IpcLocation location = *decode_handle(exporter.share(64, "text"));
  location.physical_device = 0;
  const std::string nonce = to_hex(location.nonce.data(), location.nonce.size());
  use_device();
  for (const char* fault : {"unsealed", "name", "long"}) {
    location.file = std::stoi(exporter.ask(std::string("forge ") + fault + " " + nonce));
    CHECK_EQUAL(open_result(encode_handle(location)), CUDA_ERROR_INVALID_VALUE);
  }
  location.file = std::stoi(exporter.ask("forge nothing " + nonce));
  open(encode_handle(location));
}

TEST("An exporter that this process may not look into is NOT_PERMITTED, and the reason names both users") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  CHECK(exporter.ask("close-proc") == "done");
  use_device();
  if (geteuid() == 0) CHECK(setresuid(65534, 65534, 65534) == 0);
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_NOT_PERMITTED);
  const std::string reason = cu().cudashm_emulated_reason();
  CHECK(reason.find("runs as uid " + std::to_string(geteuid())) != std::string::npos);
  CHECK(reason.find("owned by uid 0") != std::string::npos);
}

TEST("Memory of another device is mapped by lazy peer access", "CUDASHM_EMULATED_DEVICE_COUNT=2") {
  Exporter exporter({"CUDASHM_EMULATED_DEVICE_COUNT=2"});
  const CUipcMemHandle handle = exporter.share(64, "peer", 1);
  use_device(0);
  const CUdeviceptr pointer = open(handle);
  CHECK(text_at(pointer, 4) == "peer");
  int ordinal = -1;
  CHECK_OK(cu().cuPointerGetAttribute(&ordinal, 9, pointer));
  CHECK_EQUAL(ordinal, 1);
  use_device(1);
  CHECK(open(handle) != pointer);
}

TEST("Without peer access only the exporter's device opens", "CUDASHM_EMULATED_DEVICE_COUNT=2",
     "CUDASHM_EMULATED_NO_PEER=1") {
  Exporter exporter({"CUDASHM_EMULATED_DEVICE_COUNT=2"});
  const CUipcMemHandle handle = exporter.share(64, "peer", 1);
  use_device(0);
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  use_device(1);
  open(handle);
}

TEST("A device is the same one under another ordinal, and unknown where it is not visible",
     "CUDASHM_EMULATED_DEVICE_COUNT=2", "CUDASHM_EMULATED_NO_PEER=1") {
  Exporter exporter({"CUDASHM_EMULATED_DEVICE_COUNT=4", "CUDA_VISIBLE_DEVICES=1,3"});
  const CUipcMemHandle second = exporter.share(64, "text", 0);
  const CUipcMemHandle fourth = exporter.share(64, "text", 1);
  use_device(1);
  open(second);
  CHECK_EQUAL(open_result(fourth), CUDA_ERROR_INVALID_VALUE);
}

TEST("A platform without IPC says NOT_SUPPORTED", "CUDASHM_EMULATED_NO_IPC=1") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(64, "text");
  use_device();
  CUipcMemHandle out;
  CHECK_EQUAL(cu().cuIpcGetMemHandle(&out, allocate(64)), CUDA_ERROR_NOT_SUPPORTED);
  CHECK_EQUAL(open_result(handle), CUDA_ERROR_NOT_SUPPORTED);
  int value = -1;
  CHECK_OK(cu().cuDeviceGetAttribute(&value, 125, 0));
  CHECK_EQUAL(value, 0);
}

TEST("Ten thousand opens, half of them refused, leave no mapping, no file and no memory") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(65536, "text");
  IpcLocation stale = *decode_handle(handle);
  stale.nonce[0] ^= 1;
  use_device();
  CHECK_OK(cu().cuIpcCloseMemHandle(open(handle)));
  const size_t files = entries("/proc/self/fd");
  for (int round = 0; round < 5000; ++round) {
    CHECK_OK(cu().cuIpcCloseMemHandle(open(handle)));
    CHECK_EQUAL(open_result(encode_handle(stale)), CUDA_ERROR_INVALID_VALUE);
  }
  CHECK_EQUAL(success_count("cuIpcOpenMemHandle_v2"), success_count("cuIpcCloseMemHandle"));
  CHECK_EQUAL(gauge("imports"), uint64_t{0});
  CHECK_EQUAL(gauge("imported_bytes"), uint64_t{0});
  CHECK_EQUAL(entries("/proc/self/fd"), files);
}

TEST("Threads that open, copy and close the same handle do not disturb each other") {
  Exporter exporter;
  const CUipcMemHandle handle = exporter.share(4096, "text");
  const CUcontext context = use_device();
  std::vector<std::thread> threads;
  for (int index = 0; index < 8; ++index) {
    threads.emplace_back([&] {
      CHECK_OK(cu().cuCtxPushCurrent_v2(context));
      for (int round = 0; round < 200; ++round) {
        const CUdeviceptr pointer = open(handle);
        CHECK(text_at(pointer, 4) == "text");
        CHECK_OK(cu().cuIpcCloseMemHandle(pointer));
      }
      CHECK_OK(cu().cuCtxPopCurrent_v2(nullptr));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(gauge("imports"), uint64_t{0});
  CHECK_EQUAL(success_count("cuIpcOpenMemHandle_v2"), uint64_t{1600});
  CHECK_EQUAL(success_count("cuIpcCloseMemHandle"), uint64_t{1600});
}
