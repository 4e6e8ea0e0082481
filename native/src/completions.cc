#include "completions.h"

#include <mutex>
#include <utility>
#include <vector>

namespace cudashm {

class Completions::Sink {
 public:
  struct Settled {
    std::uint64_t id;
    ToJs to_js;
  };

  explicit Sink(napi_threadsafe_function wake_up) : wake_up_(wake_up) {}

  void Settle(std::uint64_t id, ToJs to_js) {
    std::lock_guard lock(mutex_);
    if (wake_up_ == nullptr) return;
    settled_.push_back({id, std::move(to_js)});
    if (settled_.size() == 1) napi_call_threadsafe_function(wake_up_, nullptr, napi_tsfn_nonblocking);
  }

  std::vector<Settled> TakeAll() {
    std::lock_guard lock(mutex_);
    return std::exchange(settled_, {});
  }

  // The function is Node's to destroy, so no lane may touch it after this.
  void Stop() {
    std::lock_guard lock(mutex_);
    wake_up_ = nullptr;
  }

 private:
  std::mutex mutex_;
  napi_threadsafe_function wake_up_;
  std::vector<Settled> settled_;
};

void Completions::Ticket::Settle(ToJs to_js) const {
  sink_->Settle(id_, std::move(to_js));
}

Completions::Completions(Napi::Env env) {
  const Napi::String name = Napi::String::New(env, "cudashm");
  const napi_status status = napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr,
                                                             this, Deliver, &wake_up_);
  NAPI_THROW_IF_FAILED_VOID(env, status);
  // Waiting for nothing must not keep the process alive; `Begin` refs it again.
  napi_unref_threadsafe_function(env, wake_up_);
  sink_ = std::make_shared<Sink>(wake_up_);
}

Completions::~Completions() = default;

Completions::Begun Completions::Begin(Napi::Env env, Napi::Value kept, Loop loop) {
  const std::uint64_t id = next_id_++;
  Pending pending{Napi::Promise::Deferred::New(env), {}, loop};
  if (!kept.IsEmpty()) pending.kept = Napi::Persistent(kept.As<Napi::Object>());
  Napi::Promise promise = pending.deferred.Promise();
  if (loop == Loop::waits && waited_for_++ == 0) napi_ref_threadsafe_function(env, wake_up_);
  pending_.emplace(id, std::move(pending));
  return {promise, Ticket(sink_, id)};
}

void Completions::Stop() {
  sink_->Stop();
  // Dropped here, where the environment still lives, not in a destructor after its end.
  sink_->TakeAll();
  pending_.clear();
}

void Completions::Deliver(napi_env env, napi_value, void* completions, void*) {
  // Null when the environment is on its way down.
  if (env != nullptr) static_cast<Completions*>(completions)->DeliverAll(env);
}

void Completions::Settle(Napi::Env env, Pending& pending, const ToJs& to_js) {
  try {
    const Napi::Value kept = pending.kept.IsEmpty() ? Napi::Value() : pending.kept.Value();
    try {
      pending.deferred.Resolve(to_js(env, kept));
    } catch (const Napi::Error& error) {
      pending.deferred.Reject(error.Value());
    }
  } catch (const Napi::Error&) {
    // The worker thread is being terminated: no JavaScript value can be made any more, and nobody waits.
  }
}

void Completions::DeliverAll(Napi::Env env) {
  for (Sink::Settled& settled : sink_->TakeAll()) {
    auto found = pending_.extract(settled.id);
    if (found.empty()) continue;
    if (found.mapped().loop == Loop::waits) --waited_for_;
    const Napi::HandleScope scope(env);
    Settle(env, found.mapped(), settled.to_js);
  }
  if (waited_for_ == 0) napi_unref_threadsafe_function(env, wake_up_);
}

}  // namespace cudashm
