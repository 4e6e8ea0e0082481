#pragma once

#include <napi.h>

#include <chrono>
#include <memory>

#include "completions.h"
#include "device_memory.h"
#include "driver.h"
#include "process_watch.h"

namespace cudashm {

// What the addon keeps for one JavaScript thread: references, promises and watched processes, no driver state.
struct Environment {
  explicit Environment(Napi::Env env) : completions(env) {}

  static Environment& Of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  struct NewDriver {
    Driver* driver;
    std::chrono::milliseconds linger;
  };

  Completions completions;
  ProcessWatch process_watch;
  Napi::FunctionReference driver_class;
  Napi::FunctionReference memory_class;
  // What the object under construction stands for. JavaScript can reach the constructors too, and finds
  // nothing here.
  NewDriver new_driver{nullptr, {}};
  DeviceMemory::Ptr new_memory;
};

}  // namespace cudashm
