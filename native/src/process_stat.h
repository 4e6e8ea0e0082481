#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <variant>

namespace cudashm {

// What the kernel says of a process in /proc/<pid>/stat.
struct ProcessStat {
  char state;
  long threads;
  // Clock ticks from the boot; with the number, it tells a process from every other of this boot.
  std::uint64_t start_time;

  // Dead and not yet waited for by its parent. The thread that `main` ran on alone may be dead before the others.
  bool HasExited() const { return (state == 'Z' || state == 'X' || state == 'x') && threads <= 1; }
};

// Or the errno: ENOENT or ESRCH where there is no such process, or none that may be seen.
using ProcessStatResult = std::variant<ProcessStat, int>;

ProcessStatResult ReadProcessStat(pid_t pid);

// EPROTO if it is not such a text.
ProcessStatResult ParseProcessStat(std::string_view text);

}  // namespace cudashm
