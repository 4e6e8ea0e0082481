#include "process_watch_wrap.h"

#include <utility>

#include "arguments.h"
#include "environment.h"
#include "process_watch.h"

namespace cudashm {

namespace {

const char* NameOf(WatchFailure::Kind kind) {
  switch (kind) {
    case WatchFailure::Kind::gone:
      return "gone";
    case WatchFailure::Kind::another:
      return "another";
    case WatchFailure::Kind::hidden:
      return "hidden";
    case WatchFailure::Kind::system:
      return "system";
  }
  return "system";
}

Napi::Value ToJs(Napi::Env env, const WatchFailure& failure) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("failed", NameOf(failure.kind));
  object.Set("startTime", Napi::BigInt::New(env, failure.start_time));
  object.Set("code", failure.code);
  object.Set("call", failure.call);
  return object;
}

}  // namespace

Napi::Value WatchProcess(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::int32_t pid = IntegerArgument(info, 0);
  const std::uint64_t start_time = Uint64Argument(info, 1);
  if (!info[2].IsBoolean()) throw Napi::TypeError::New(env, "argument 3 must be a boolean");
  const auto way = info[2].ToBoolean() ? ProcessWatch::Way::pidfd : ProcessWatch::Way::start_time;
  Environment& environment = Environment::Of(env);
  auto [promise, ticket] = environment.completions.Begin(env, {}, Completions::Loop::runs_empty);
  auto settle = [ticket = ticket](bool exited) {
    ticket.Settle([exited](Napi::Env to, Napi::Value) { return Napi::Boolean::New(to, exited); });
  };
  const auto added = environment.process_watch.Add(pid, start_time, way, settle);
  if (const auto* failure = std::get_if<WatchFailure>(&added)) {
    settle(false);
    return ToJs(env, *failure);
  }
  Napi::Object watch = Napi::Object::New(env);
  watch.Set("id", Napi::BigInt::New(env, std::uint64_t{std::get<ProcessWatch::Id>(added)}));
  watch.Set("exited", promise);
  return watch;
}

Napi::Value UnwatchProcess(const Napi::CallbackInfo& info) {
  Environment::Of(info.Env()).process_watch.Remove(Uint64Argument(info, 0));
  return info.Env().Undefined();
}

}  // namespace cudashm
