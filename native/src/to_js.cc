#include "to_js.h"

namespace cudashm {

namespace {

Napi::Value FailureObject(Napi::Env env, const char* failed, int code, const std::string& name,
                          const std::string& call, const std::string& text) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("failed", failed);
  object.Set("code", code);
  object.Set("name", name);
  object.Set("call", call);
  object.Set("text", text);
  return object;
}

}  // namespace

Napi::Value ToJs(Napi::Env env, const Failure& failure) {
  const char* failed = failure.kind == Failure::Kind::refused ? "refused"
                       : failure.kind == Failure::Kind::full  ? "full"
                                                              : "closed";
  return FailureObject(env, failed, failure.code, failure.name, failure.call, "");
}

Napi::Value ToJs(Napi::Env env, const NativeError& error) {
  const bool missing = error.code() == NativeError::Code::library_missing;
  return FailureObject(env, missing ? "library_missing" : "library_unusable", 0, "", "", error.what());
}

}  // namespace cudashm
