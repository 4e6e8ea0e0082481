#include "lifecycle.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "reason.h"

namespace cudashm::emulated {
namespace {

std::atomic<bool> has_initialised{false};
std::atomic<bool> has_exited{false};
std::atomic<bool> was_forked{false};
std::atomic<CUresult> sticky{CUDA_SUCCESS};

}  // namespace

CUresult standing_refusal() {
  if (has_exited) return refuse(CUDA_ERROR_DEINITIALIZED, "the process is exiting");
  if (was_forked) {
    return refuse(CUDA_ERROR_NOT_INITIALIZED, "this process was forked after cuInit and did not exec");
  }
  if (const CUresult fault = sticky) return refuse(fault, "an earlier call met this fault, which only a new process ends");
  return CUDA_SUCCESS;
}

bool initialised() { return has_initialised; }

void set_initialised() {
  if (has_initialised.exchange(true)) return;
  // As with NVIDIA's driver, whoever was constructed before cuInit and calls from its destructor comes too late.
  std::atexit([] { has_exited = true; });
  pthread_atfork(nullptr, nullptr, [] { was_forked = true; });
}

void note_if_sticky(CUresult result) {
  const bool loses_context = result == 700 || result == 702 || result == 709 || result == 710 ||
                             (result >= 714 && result <= 719) || result == 999;
  CUresult none = CUDA_SUCCESS;
  if (loses_context) sticky.compare_exchange_strong(none, result);
}

}  // namespace cudashm::emulated
