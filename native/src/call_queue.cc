#include "call_queue.h"

#include <system_error>
#include <utility>

#include "quiet_thread.h"

namespace cudashm {

CallQueue::CallQueue(std::string name, std::size_t max_lanes, std::size_t max_waiting)
    : name_(std::move(name)), max_lanes_(max_lanes), max_waiting_(max_waiting) {}

bool CallQueue::Post(const char* what, Room room, std::function<void()> call) {
  std::unique_lock lock(mutex_);
  // A lane that was woken and has not got here yet counts as free, so the limit does not depend on luck.
  if (room == Room::limited && limited_waiting_ + running_.size() >= max_waiting_ + max_lanes_) return false;
  if (waiting_.size() >= idle_ && lanes_ < max_lanes_ && !StartLane() && lanes_ == 0 &&
      room == Room::limited) {
    return false;
  }
  waiting_.push_back({what, room, std::move(call)});
  if (room == Room::limited) ++limited_waiting_;
  WakeLane(lock);
  return true;
}

void CallQueue::WakeAt(Clock::time_point when, std::function<void()> call) {
  std::lock_guard lock(mutex_);
  wake_at_ = when;
  wake_call_ = std::move(call);
  changed_.notify_all();
}

std::vector<CallQueue::Running> CallQueue::RunningCalls() const {
  std::lock_guard lock(mutex_);
  return {running_.begin(), running_.end()};
}

void CallQueue::WakeLane(std::unique_lock<std::mutex>& lock) {
  // One that is on its way wakes the next when it is there: this thread has better things to do.
  const bool needed = !waking_ && idle_ > 0;
  if (needed) waking_ = true;
  // A lane that is woken with the lock taken has to sleep once more.
  lock.unlock();
  if (needed) changed_.notify_one();
}

bool CallQueue::StartLane() {
  try {
    StartQuietThread(name_, [this] { Lane(); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  ++lanes_;
  return true;
}

void CallQueue::Lane() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!waiting_.empty()) {
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      if (next.room == Room::limited) --limited_waiting_;
      Run(lock, next.what, std::move(next.call));
    } else if (wake_at_.has_value() && Clock::now() >= *wake_at_) {
      wake_at_.reset();
      Run(lock, "idle work", std::exchange(wake_call_, nullptr));
    } else {
      ++idle_;
      if (wake_at_.has_value()) {
        // A copy: another thread may move the time while this one sleeps without the lock.
        const Clock::time_point until = *wake_at_;
        changed_.wait_until(lock, until);
      } else {
        changed_.wait(lock);
      }
      --idle_;
      waking_ = false;
    }
  }
}

void CallQueue::Run(std::unique_lock<std::mutex>& lock, const char* what, std::function<void()> call) {
  const auto running = running_.insert(running_.end(), {what, Clock::now()});
  if (waiting_.empty()) lock.unlock();
  else WakeLane(lock);
  call();
  // What the call holds may be the last of something whose end posts another call: drop it unlocked.
  call = nullptr;
  lock.lock();
  running_.erase(running);
}

}  // namespace cudashm
