#pragma once

#include <napi.h>

#include "device_memory.h"

namespace cudashm {

// DeviceMemory as a JavaScript object. Collected while open, it closes the memory in the background.
class MemoryWrap : public Napi::ObjectWrap<MemoryWrap> {
 public:
  static Napi::Function Define(Napi::Env env);
  static Napi::Value New(Napi::Env env, DeviceMemory::Ptr memory);

  explicit MemoryWrap(const Napi::CallbackInfo& info);

 private:
  Napi::Value DeviceId(const Napi::CallbackInfo& info);
  Napi::Value DevicePointer(const Napi::CallbackInfo& info);
  Napi::Value ByteSize(const Napi::CallbackInfo& info);
  Napi::Value Read(const Napi::CallbackInfo& info);
  Napi::Value Write(const Napi::CallbackInfo& info);
  Napi::Value Checksum(const Napi::CallbackInfo& info);
  Napi::Value ExportHandle(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);

  DeviceMemory::Ptr memory_;
};

}  // namespace cudashm
