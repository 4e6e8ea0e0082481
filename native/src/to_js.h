#pragma once

#include <napi.h>

#include <functional>
#include <string>
#include <utility>

#include "completions.h"
#include "error.h"

namespace cudashm {

// `{ failed, code, name, call, text }`; what does not apply is 0 or "".
Napi::Value ToJs(Napi::Env env, const Failure& failure);
Napi::Value ToJs(Napi::Env env, const NativeError& error);

// Settles `ticket` with what `convert` makes of a result, or with the failure.
template <class T, class Convert>
std::function<void(Result<T>)> SettleWith(Completions::Ticket ticket, Convert convert) {
  return [ticket = std::move(ticket), convert](Result<T> result) {
    ticket.Settle([result = std::move(result), convert](Napi::Env env, Napi::Value kept) -> Napi::Value {
      if (const Failure* failure = std::get_if<Failure>(&result)) return ToJs(env, *failure);
      return convert(env, kept, std::get<T>(result));
    });
  };
}

}  // namespace cudashm
