#include "exporter.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <sstream>

#include "../../emulated/shared_segment.h"
#include "check.h"

namespace {

std::vector<CUdeviceptr> allocations;

CUipcMemHandle export_allocation(size_t index, size_t offset) {
  CUipcMemHandle handle{};
  CHECK_OK(cu().cuIpcGetMemHandle(&handle, allocations.at(index) + offset));
  return handle;
}

/** A file that looks like an allocation's but is not: answers its number. */
int make_false_segment(const std::string& fault, const std::string& nonce_hex) {
  using namespace cudashm::emulated;
  SegmentHeader header{};
  std::memcpy(header.magic, segment_magic, sizeof header.magic);
  header.version = segment_version;
  header.byte_size = fault == "long" ? 4097 : 4096;
  for (size_t index = 0; index < header.nonce.size(); ++index) {
    header.nonce[index] = static_cast<unsigned char>(std::stoi(nonce_hex.substr(index * 2, 2), nullptr, 16));
  }
  const int file = memfd_create(fault == "name" ? "something-else" : segment_name, MFD_ALLOW_SEALING);
  CHECK(ftruncate(file, static_cast<off_t>(segment_data_offset + 4096)) == 0);
  CHECK(pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header));
  if (fault != "unsealed") CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  return file;
}

std::string answer(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command == "allocate") {  // device bytes text -> handle
    int device = 0;
    size_t bytes = 0;
    std::string text;
    words >> device >> bytes >> text;
    use_device(device);
    allocations.push_back(allocate(bytes));
    if (!text.empty()) CHECK_OK(cu().cuMemcpyHtoD_v2(allocations.back(), text.data(), text.size()));
    const CUipcMemHandle handle = export_allocation(allocations.size() - 1, 0);
    return to_hex(&handle, sizeof handle);
  }
  if (command == "export") {  // index offset -> handle
    size_t index = 0;
    size_t offset = 0;
    words >> index >> offset;
    const CUipcMemHandle handle = export_allocation(index, offset);
    return to_hex(&handle, sizeof handle);
  }
  if (command == "read") {  // index offset bytes -> text
    size_t index = 0;
    size_t offset = 0;
    size_t bytes = 0;
    words >> index >> offset >> bytes;
    std::string text(bytes, '\0');
    CHECK_OK(cu().cuMemcpyDtoH_v2(text.data(), allocations.at(index) + offset, bytes));
    return text;
  }
  if (command == "free") {  // index
    size_t index = 0;
    words >> index;
    CHECK_OK(cu().cuMemFree_v2(allocations.at(index)));
    return "done";
  }
  if (command == "uuid") {  // -> uuid of device 0
    CUuuid uuid;
    use_device(0);
    CHECK_OK(cu().cuDeviceGetUuid_v2(&uuid, 0));
    return to_hex(&uuid, sizeof uuid);
  }
  if (command == "close-proc") {  // nobody without CAP_SYS_PTRACE may look into this process any more
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
    return "done";
  }
  if (command == "forge") {  // fault nonce -> file number
    std::string fault;
    std::string nonce;
    words >> fault >> nonce;
    return std::to_string(make_false_segment(fault, nonce));
  }
  return "unknown command";
}

}  // namespace

std::string to_hex(const void* data, size_t size) {
  std::string hex;
  for (size_t index = 0; index < size; ++index) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<const unsigned char*>(data)[index]);
    hex += byte;
  }
  return hex;
}

CUipcMemHandle handle_from_hex(const std::string& hex) {
  CHECK(hex.size() == 2 * sizeof(CUipcMemHandle));
  CUipcMemHandle handle;
  for (size_t index = 0; index < sizeof handle.reserved; ++index) {
    handle.reserved[index] = static_cast<char>(std::stoi(hex.substr(index * 2, 2), nullptr, 16));
  }
  return handle;
}

int run_exporter() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << answer(line) << std::endl;
  return 0;
}

Exporter::Exporter(std::vector<std::string> environment) {
  int down[2];
  int up[2];
  CHECK(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  environment.push_back(std::string("CUDASHM_TEST_LIBRARY=") + std::getenv("CUDASHM_TEST_LIBRARY"));
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  char program[] = "/proc/self/exe";
  char role[] = "--exporter";
  char* arguments[] = {program, role, nullptr};
  CHECK(posix_spawn(&pid_, program, &actions, nullptr, arguments, variables.data()) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
}

Exporter::~Exporter() {
  close(to_);
  close(from_);
  int status = 0;
  if (pid_ > 0 && (waitpid(pid_, &status, 0) != pid_ || status != 0)) fail(__FILE__, __LINE__, "the exporter failed");
}

std::string Exporter::ask(const std::string& command) {
  const std::string line = command + "\n";
  CHECK(write(to_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  std::string reply;
  for (char byte = 0; read(from_, &byte, 1) == 1 && byte != '\n';) reply += byte;
  return reply;
}

CUipcMemHandle Exporter::share(size_t bytes, const std::string& text, int device) {
  return handle_from_hex(ask("allocate " + std::to_string(device) + " " + std::to_string(bytes) + " " + text));
}

void Exporter::kill_and_reap() {
  CHECK(kill(pid_, SIGKILL) == 0);
  int status = 0;
  CHECK(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
}
