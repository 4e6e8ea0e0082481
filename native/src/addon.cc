#include <napi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver_wrap.h"
#include "environment.h"
#include "file_lock.h"
#include "memory_wrap.h"
#include "process_end.h"
#include "process_watch_wrap.h"

namespace cudashm {

namespace {

// Runs before Node destroys the thread's objects, which then close their memory in the background.
void StopEnvironment(Environment* environment) {
  const bool main_thread = syscall(SYS_gettid) == getpid();
  if (main_thread) MarkProcessEnding();
  environment->process_watch.Stop();
  environment->completions.Stop();
}

Napi::Object Initialise(Napi::Env env, Napi::Object exports) {
  auto* environment = new Environment(env);
  env.SetInstanceData(environment);
  environment->driver_class = Napi::Persistent(DriverWrap::Define(env));
  environment->memory_class = Napi::Persistent(MemoryWrap::Define(env));
  // Registered after the thread-safe function's own hook, so that it runs before it.
  env.AddCleanupHook(StopEnvironment, environment);
  exports.Set("loadDriver", Napi::Function::New<DriverWrap::Load>(env, "loadDriver"));
  exports.Set("lockFile", Napi::Function::New<LockFile>(env, "lockFile"));
  exports.Set("watchProcess", Napi::Function::New<WatchProcess>(env, "watchProcess"));
  exports.Set("unwatchProcess", Napi::Function::New<UnwatchProcess>(env, "unwatchProcess"));
  return exports;
}

}  // namespace

}  // namespace cudashm

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  return cudashm::Initialise(env, exports);
}

NODE_API_MODULE(cudashm, Init)
