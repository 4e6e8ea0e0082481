#include "exporter_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "process_identity.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

ExporterFile refused(CUresult result) { return {result, UniqueFd{}, SegmentHeader{}}; }

ExporterFile refused_by_system(int proc_directory, int error) {
  if (error == EACCES || error == EPERM) {
    struct stat owner{};
    const bool known = fstat(proc_directory, &owner) == 0;
    return refused(refuse(CUDA_ERROR_NOT_PERMITTED,
                          "this process runs as uid %u and may not look into the exporter's /proc entry, owned by "
                          "uid %d; sharing needs equal uids or CAP_SYS_PTRACE",
                          geteuid(), known ? static_cast<int>(owner.st_uid) : -1));
  }
  if (error == EMFILE || error == ENFILE || error == ENOMEM) {
    return refused(refuse(CUDA_ERROR_OUT_OF_MEMORY, "opening the exporter's memory failed: %s", std::strerror(error)));
  }
  return refused(refuse(CUDA_ERROR_INVALID_VALUE, "the exporter has exited or freed the memory"));
}

ExporterFile other_file() {
  return refused(refuse(CUDA_ERROR_INVALID_VALUE, "the exporter has freed the memory"));
}

bool is_memfd_of_ours(const char* own_path) {
  char target[64];
  const ssize_t length = readlink(own_path, target, sizeof target);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)) == "/memfd:cudashm-emulated (deleted)";
}

bool holds(int file, const IpcLocation& location, SegmentHeader& header) {
  constexpr int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const int seals = fcntl(file, F_GET_SEALS);
  struct stat status{};
  if (seals < 0 || (seals & needed) != needed || (seals & F_SEAL_WRITE) != 0 || fstat(file, &status) != 0) return false;
  if (pread(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return false;
  const auto size = static_cast<uint64_t>(status.st_size);
  return std::memcmp(header.magic, segment_magic, sizeof header.magic) == 0 && header.version == segment_version &&
         header.physical_device == location.physical_device && header.nonce == location.nonce &&
         header.byte_size > 0 && size >= segment_data_offset && header.byte_size <= size - segment_data_offset;
}

}  // namespace

ExporterFile open_exporter_file(const IpcLocation& location) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d", location.pid);
  // Held to the end: it stays bound to this very process, so the number cannot pass to another one meanwhile.
  const UniqueFd process(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process) return refused_by_system(-1, errno);
  const auto started = start_time(process.get());
  if (!started) return refused_by_system(process.get(), errno);
  if (*started != location.start_time) {
    return refused(refuse(CUDA_ERROR_INVALID_VALUE, "the exporter has exited or lives in another PID namespace"));
  }
  // O_PATH pins the file without opening it, so what is looked at is what is opened afterwards.
  std::snprintf(path, sizeof path, "fd/%d", location.file);
  const UniqueFd pinned(openat(process.get(), path, O_PATH | O_CLOEXEC));
  if (!pinned) return refused_by_system(process.get(), errno);
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", pinned.get());
  if (!is_memfd_of_ours(path)) return other_file();
  UniqueFd file(open(path, O_RDWR | O_CLOEXEC));
  if (!file) return refused_by_system(process.get(), errno);
  SegmentHeader header;
  if (!holds(file.get(), location, header)) return other_file();
  return {CUDA_SUCCESS, std::move(file), header};
}

}  // namespace cudashm::emulated
