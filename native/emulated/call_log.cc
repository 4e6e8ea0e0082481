#include "call_log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "environment.h"

namespace cudashm::emulated {
namespace {

std::atomic<int> log_file{-1};

}  // namespace

int open_call_log() {
  const std::string& path = environment().log_path;
  if (path.empty() || log_file.load() >= 0) return 0;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  int none = -1;
  if (!log_file.compare_exchange_strong(none, file)) close(file);
  return 0;
}

bool call_log_is_open() { return log_file.load(std::memory_order_relaxed) >= 0; }

void log_call(Function function, CUresult result, std::chrono::steady_clock::duration duration, const char* reason) {
  const int file = log_file.load();
  if (file < 0) return;
  thread_local const long thread = syscall(SYS_gettid);
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  char line[512];
  const int length = std::snprintf(line, sizeof line, "%d %ld %s %d %lld%s%s\n", static_cast<int>(getpid()), thread,
                                   function_name(function), result, static_cast<long long>(microseconds),
                                   *reason == '\0' ? "" : " ", reason);
  // The log must never change what the program sees: a full disk loses lines, nothing else.
  const int saved = errno;
  [[maybe_unused]] const ssize_t written =
      write(file, line, static_cast<size_t>(std::min<int>(length, static_cast<int>(sizeof line) - 1)));
  errno = saved;
}

}  // namespace cudashm::emulated
