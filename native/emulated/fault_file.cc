#include "fault_file.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "environment.h"
#include "injections.h"

namespace cudashm::emulated {
namespace {

/** The file as it was when it was read last; as when there is none, to begin with. */
struct FaultFile {
  std::mutex mutex;
  struct stat status{};
  std::vector<Injection> faults;
  bool is_usable = true;
  std::array<uint64_t, function_count> calls{};
};

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size &&
         one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

void read_if_changed(FaultFile& file, const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) status = {};
  if (is_same(status, file.status)) return;
  file.status = status;
  file.is_usable = true;
  file.calls = {};
  std::ifstream stream(path);
  std::string list(std::istreambuf_iterator<char>(stream), {});
  if (list.ends_with('\n')) list.pop_back();
  file.faults = parse_injections(list, 1, largest_result, [&](std::string_view item, const std::string& expected) {
    file.is_usable = false;
    std::fprintf(stderr, "cudashm emulated driver: CUDASHM_EMULATED_FAULTS_FILE: '%.*s' cannot be used; expected %s\n",
                 static_cast<int>(item.size()), item.data(), expected.c_str());
  });
}

}  // namespace

std::optional<CUresult> fault_of_file(Function function) {
  const std::string& path = environment().faults_path;
  if (path.empty()) return std::nullopt;
  // Never destroyed: threads may still be inside a call while the process exits.
  static FaultFile& file = *new FaultFile;
  const std::lock_guard lock(file.mutex);
  read_if_changed(file, path);
  const uint64_t number = ++file.calls[static_cast<unsigned>(function)];
  if (!file.is_usable) return CUDA_ERROR_INVALID_VALUE;
  const auto fault = injected(file.faults, function, number);
  if (!fault) return std::nullopt;
  return static_cast<CUresult>(*fault);
}

}  // namespace cudashm::emulated
