#include "file_lock.h"

#include <sys/file.h>

#include <cerrno>

#include "arguments.h"

namespace cudashm {

Napi::Value LockFile(const Napi::CallbackInfo& info) {
  const int fd = IntegerArgument(info, 0);
  return Napi::Number::New(info.Env(), flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno);
}

}  // namespace cudashm
