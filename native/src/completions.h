#pragma once

#include <napi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace cudashm {

// The promises of one JavaScript thread that lanes settle. Results come over in batches, one wake-up of the
// loop for as many as are ready. JavaScript values stay here; a lane holds a ticket and plain C++ values. When
// the thread is gone, what lanes still bring is dropped on the lane.
class Completions {
 public:
  // Makes the promise's value on the JavaScript thread. `kept` is what `Begin` was given.
  using ToJs = std::function<Napi::Value(Napi::Env env, Napi::Value kept)>;

  class Sink;

  // The right to settle one promise, once, from any thread.
  class Ticket {
   public:
    Ticket(std::shared_ptr<Sink> sink, std::uint64_t id) : sink_(std::move(sink)), id_(id) {}
    void Settle(ToJs to_js) const;

   private:
    std::shared_ptr<Sink> sink_;
    std::uint64_t id_;
  };

  struct Begun {
    Napi::Promise promise;
    Ticket ticket;
  };

  // Whether the loop stays alive for a promise, or may run empty and end before it is settled.
  enum class Loop { waits, runs_empty };

  explicit Completions(Napi::Env env);
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  // Keeps `kept` (an object, or nothing) until the promise is settled.
  Begun Begin(Napi::Env env, Napi::Value kept = {}, Loop loop = Loop::waits);

  // The JavaScript thread is about to go: nothing is delivered any more.
  void Stop();

 private:
  struct Pending {
    Napi::Promise::Deferred deferred;
    Napi::ObjectReference kept;
    Loop loop;
  };

  static void Deliver(napi_env env, napi_value callback, void* completions, void* data);
  static void Settle(Napi::Env env, Pending& pending, const ToJs& to_js);
  void DeliverAll(Napi::Env env);

  napi_threadsafe_function wake_up_ = nullptr;
  std::shared_ptr<Sink> sink_;
  std::unordered_map<std::uint64_t, Pending> pending_;
  // Those of them that the loop waits for.
  std::size_t waited_for_ = 0;
  std::uint64_t next_id_ = 0;
};

}  // namespace cudashm
