#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "call_queue.h"
#include "driver_api.h"
#include "outcome.h"

namespace cudashm {

// The primary context of one device. Retained when the first user comes, released a while after the last has
// gone, since it costs hundreds of MiB to keep and hundreds of milliseconds to make.
class DeviceContext {
 public:
  using Clock = CallQueue::Clock;

  DeviceContext(const DriverApi& api, CallQueue& queue) : api_(api), queue_(queue) {}

  // Counts a user in and makes the context if there is none. No user was counted if the outcome is not ok.
  Outcome Enter(CUdevice device);

  // Counts a user out; after the last, the context goes at once for 0, else once idle for `linger`.
  void Leave(std::chrono::milliseconds linger);

  // Counts a visitor in, who makes no context and for whom none stays longer than it would have; false, with
  // nobody counted, if there is none.
  bool Visit();
  void EndVisit();

  // Runs `calls` with the context current on this thread. Only for a user or a visitor that was counted in.
  Outcome With(const std::function<Outcome()>& calls) const;

  // Has the driver take back what nobody is left to ask for again. Where `end` is refused it is called again
  // whenever a user comes, and before the context is released, with which all that lives in it goes. Only for a
  // user that was counted in, and not within `With`.
  void EndForGood(std::function<Outcome()> end);

 private:
  using Ends = std::vector<std::function<Outcome()>>;

  // Calls each and leaves those that were refused.
  void Try(Ends& ends) const;
  void ReleaseIfIdle(Clock::time_point idle_since);

  const DriverApi& api_;
  CallQueue& queue_;
  // Held over retain and release, so that the two never overtake each other.
  std::mutex mutex_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::size_t users_ = 0;
  std::size_t visitors_ = 0;
  // Refused so far. Each is of this context: of a later one it could hit another's memory at the same address.
  Ends left_over_;
  Clock::time_point idle_since_;
  Clock::time_point idle_until_;
};

}  // namespace cudashm
