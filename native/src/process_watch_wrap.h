#pragma once

#include <napi.h>

namespace cudashm {

// watchProcess(pid, startTime, withPidfd): a failure, or the watch's id and a promise of its end: true when the
// process has exited, false when the watch was ended.
Napi::Value WatchProcess(const Napi::CallbackInfo& info);

// unwatchProcess(id)
Napi::Value UnwatchProcess(const Napi::CallbackInfo& info);

}  // namespace cudashm
