#pragma once

#include <napi.h>

#include <chrono>

#include "driver.h"

namespace cudashm {

// A loaded driver as a JavaScript object, with the linger that this object's users asked for.
class DriverWrap : public Napi::ObjectWrap<DriverWrap> {
 public:
  static Napi::Function Define(Napi::Env env);
  // loadDriver(libraryPath, contextLingerMs)
  static Napi::Value Load(const Napi::CallbackInfo& info);

  explicit DriverWrap(const Napi::CallbackInfo& info);

 private:
  Napi::Value Kind(const Napi::CallbackInfo& info);
  Napi::Value LibraryPath(const Napi::CallbackInfo& info);
  Napi::Value Version(const Napi::CallbackInfo& info);
  Napi::Value Initialise(const Napi::CallbackInfo& info);
  Napi::Value Devices(const Napi::CallbackInfo& info);
  Napi::Value Attribute(const Napi::CallbackInfo& info);
  Napi::Value MemoryInfo(const Napi::CallbackInfo& info);
  Napi::Value FreeBytes(const Napi::CallbackInfo& info);
  Napi::Value Open(const Napi::CallbackInfo& info);
  Napi::Value Allocate(const Napi::CallbackInfo& info);
  Napi::Value RunningCalls(const Napi::CallbackInfo& info);

  Device& DeviceArgument(const Napi::CallbackInfo& info, std::size_t index);

  Driver* driver_;
  std::chrono::milliseconds linger_;
};

}  // namespace cudashm
