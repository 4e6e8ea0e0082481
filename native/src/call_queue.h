#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace cudashm {

// Calls that wait for a lane. A lane is a thread, started when a call finds none idle, and never ended: a
// call that never returns costs its own lane and no other. Must outlive the process's threads, so leak it.
class CallQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // What must not be lost, such as a close, is taken however many wait.
  enum class Room { limited, always };

  struct Running {
    const char* what;
    Clock::time_point since;
  };

  // `name` shows in the process's thread list.
  CallQueue(std::string name, std::size_t max_lanes, std::size_t max_waiting);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // False, with `call` dropped, when the room is limited and used up. `what` is a literal, for `RunningCalls`.
  bool Post(const char* what, Room room, std::function<void()> call);

  // An idle lane runs `call` at `when`; a later WakeAt takes its place.
  void WakeAt(Clock::time_point when, std::function<void()> call);

  // The calls on lanes now, oldest lane first.
  std::vector<Running> RunningCalls() const;

 private:
  struct Waiting {
    const char* what;
    Room room;
    std::function<void()> call;
  };

  // Unlocks, and has an idle lane look at what waits, if there is one.
  void WakeLane(std::unique_lock<std::mutex>& lock);
  bool StartLane();
  void Lane();
  void Run(std::unique_lock<std::mutex>& lock, const char* what, std::function<void()> call);

  const std::string name_;
  const std::size_t max_lanes_;
  const std::size_t max_waiting_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::size_t limited_waiting_ = 0;
  std::size_t lanes_ = 0;
  std::size_t idle_ = 0;
  // Whether an idle lane was told to look and has not yet.
  bool waking_ = false;
  std::list<Running> running_;
  std::optional<Clock::time_point> wake_at_;
  std::function<void()> wake_call_;
};

}  // namespace cudashm
