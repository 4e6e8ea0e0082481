#pragma once

#include <napi.h>

namespace cudashm {

// lockFile(fd): takes the exclusive lock of the open file, without a wait. 0, or the errno of the refusal.
Napi::Value LockFile(const Napi::CallbackInfo& info);

}  // namespace cudashm
