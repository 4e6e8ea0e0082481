#include "device_context.h"

#include <iterator>
#include <utility>

namespace cudashm {

Outcome DeviceContext::Enter(CUdevice device) {
  std::unique_lock lock(mutex_);
  if (context_ == nullptr) {
    CUcontext context = nullptr;
    const CUresult code = api_.device_primary_ctx_retain(&context, device);
    if (code != kCudaSuccess) return {code, "cuDevicePrimaryCtxRetain"};
    context_ = context;
    device_ = device;
  }
  ++users_;
  if (left_over_.empty()) return {};
  // Taken off the list, so that no other lane calls one at the same time, and no lock is held over a call that
  // may hang.
  Ends ends = std::exchange(left_over_, {});
  lock.unlock();
  Try(ends);
  lock.lock();
  left_over_.insert(left_over_.end(), std::move_iterator(ends.begin()), std::move_iterator(ends.end()));
  return {};
}

void DeviceContext::Leave(std::chrono::milliseconds linger) {
  Clock::time_point now;
  {
    std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    now = idle_since_ = Clock::now();
    idle_until_ = now + linger;
  }
  if (linger.count() == 0) {
    ReleaseIfIdle(now);
  } else {
    queue_.WakeAt(now + linger, [this, now] { ReleaseIfIdle(now); });
  }
}

bool DeviceContext::Visit() {
  std::lock_guard lock(mutex_);
  if (context_ == nullptr) return false;
  ++visitors_;
  return true;
}

void DeviceContext::EndVisit() {
  Clock::time_point idle_since;
  {
    std::lock_guard lock(mutex_);
    --visitors_;
    idle_since = idle_since_;
    if (users_ > 0 || Clock::now() < idle_until_) return;
  }
  // Its time came during the visit, and found somebody there.
  ReleaseIfIdle(idle_since);
}

Outcome DeviceContext::With(const std::function<Outcome()>& calls) const {
  // Read without the lock: it cannot change while there is a user or a visitor.
  const CUresult pushed = api_.ctx_push_current(context_);
  if (pushed != kCudaSuccess) return {pushed, "cuCtxPushCurrent"};
  const Outcome outcome = calls();
  // It fails after a sticky fault only, which the calls report themselves, and their result must not be lost.
  CUcontext popped = nullptr;
  api_.ctx_pop_current(&popped);
  return outcome;
}

void DeviceContext::EndForGood(std::function<Outcome()> end) {
  if (With(end).ok()) return;
  std::lock_guard lock(mutex_);
  left_over_.push_back(std::move(end));
}

void DeviceContext::Try(Ends& ends) const {
  With([&ends]() -> Outcome {
    std::erase_if(ends, [](const auto& end) { return end().ok(); });
    return {};
  });
}

void DeviceContext::ReleaseIfIdle(Clock::time_point idle_since) {
  std::lock_guard lock(mutex_);
  // Somebody may have come, and gone again, meanwhile: then it is no longer this call's turn.
  if (context_ == nullptr || users_ + visitors_ > 0 || idle_since_ != idle_since) return;
  // Somebody else in this process may retain it as well, and would keep what is left over.
  if (!left_over_.empty()) Try(left_over_);
  const CUresult released = api_.device_primary_ctx_release(device_);
  // What was not taken back is there for the next user, and is given back after him.
  if (released != kCudaSuccess && released != kCudaErrorInvalidContext) return;
  context_ = nullptr;
  left_over_.clear();
}

}  // namespace cudashm
