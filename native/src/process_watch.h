#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "process_stat.h"
#include "unique_fd.h"

namespace cudashm {

// Why a process is not watched.
struct WatchFailure {
  enum class Kind {
    gone,     // there is no such process, or it has exited
    another,  // its number is another process's by now, which was started at `start_time`
    hidden,   // it is there, and /proc does not show it
    system,   // `call` failed with the errno `code`
  };
  Kind kind;
  std::uint64_t start_time = 0;
  int code = 0;
  const char* call = "";
};

// Tells when processes exit, which need not be children. Each is held by one pidfd, however many watch it, and one
// thread waits for all; it runs while there are watches. Where the kernel has no pidfds, that thread looks at the
// processes' start times every now and then.
//
// Called by one thread, the one that makes it.
class ProcessWatch {
 public:
  using Id = std::uint64_t;
  // Called once, with the lock held, so it must call nothing here: with true on the watch's thread when the process
  // has exited, or with false by `Remove`.
  using OnEnd = std::function<void(bool exited)>;
  enum class Way { pidfd, start_time };

  explicit ProcessWatch(std::chrono::milliseconds look_every = std::chrono::seconds(1))
      : look_every_(look_every) {}
  ~ProcessWatch() { Stop(); }
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Watches the process of this number that was started at `start_time`. Each watch wants a `Remove` in the end,
  // after it was told of the exit too.
  std::variant<Id, WatchFailure> Add(pid_t pid, std::uint64_t start_time, Way way, OnEnd on_end);

  // Ends a watch; the thread goes with the last.
  void Remove(Id id);

  // Ends the thread and forgets every watch, without a call.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // Number and start time.
  using Key = std::pair<pid_t, std::uint64_t>;

  struct Process {
    // None where it is watched by its start time.
    UniqueFd pidfd;
    std::map<Id, OnEnd> watches;
  };

  std::variant<UniqueFd, WatchFailure> Open(const Key& key, Way way);
  std::variant<std::monostate, WatchFailure> Start();
  void Wake();
  void Run();
  int WaitMilliseconds(Clock::time_point next_look) const;
  void TellOfExits(pid_t first, pid_t last, bool has_pidfd);
  static bool HasExited(const Key& key, const Process& process);

  const std::chrono::milliseconds look_every_;
  Id next_id_ = 1;
  // Every watch that was not removed, those told of an exit too.
  std::map<Id, Key> watches_;
  // Found out at the first try.
  bool no_pidfds_ = false;

  std::thread thread_;
  UniqueFd epoll_;
  UniqueFd wake_;

  // Guards what the thread shares.
  std::mutex mutex_;
  bool stopping_ = false;
  std::map<Key, Process> processes_;
};

}  // namespace cudashm
