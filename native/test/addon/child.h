#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <variant>

#include "../../src/process_stat.h"
#include "check.h"

// A process that does `run` and then waits to be killed.
class Child {
 public:
  explicit Child(const std::function<void()>& run = [] {}) : pid_(fork()) {
    CHECK(pid_ >= 0);
    if (pid_ > 0) return;
    run();
    for (;;) pause();
  }
  ~Child() { Reap(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  std::uint64_t start_time() const {
    return std::get<cudashm::ProcessStat>(cudashm::ReadProcessStat(pid_)).start_time;
  }

  // It stays a zombie until it is reaped.
  void Kill() const { CHECK(kill(pid_, SIGKILL) == 0); }

  void Reap() {
    if (reaped_) return;
    Kill();
    CHECK(waitpid(pid_, nullptr, 0) == pid_);
    reaped_ = true;
  }

 private:
  pid_t pid_;
  bool reaped_ = false;
};
