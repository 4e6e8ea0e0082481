#include "quiet_thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace cudashm {

namespace {

// For as long as it lives, threads that are started inherit a mask of all signals but the faults.
class SignalsMasked {
 public:
  SignalsMasked() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsMasked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsMasked(const SignalsMasked&) = delete;
  SignalsMasked& operator=(const SignalsMasked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread StartQuietThread(const std::string& name, std::function<void()> run) {
  const SignalsMasked masked;
  std::thread thread(std::move(run));
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace cudashm
