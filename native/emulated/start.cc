#include "start.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "call_log.h"
#include "driver_state.h"
#include "environment.h"
#include "lifecycle.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

CUresult refuse_environment(const char* problem) {
  return refuse(CUDA_ERROR_INVALID_VALUE, "the environment cannot be used: %s", problem);
}

/** Told on stderr once a process: a program may call cuInit again and again. */
void tell_problems() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  for (const std::string& problem : environment().problems) {
    std::fprintf(stderr, "cudashm emulated driver: %s\n", problem.c_str());
  }
}

}  // namespace

CUresult start(unsigned flags) {
  if (flags != 0) return refuse(CUDA_ERROR_INVALID_VALUE, "the flags of cuInit must be 0");
  if (!environment().problems.empty()) {
    tell_problems();
    return refuse_environment(environment().problems.front().c_str());
  }
  if (const int error = open_call_log()) {
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) {
      std::fprintf(stderr, "cudashm emulated driver: CUDASHM_EMULATED_LOG: '%s' cannot be written: %s\n",
                   environment().log_path.c_str(), std::strerror(error));
    }
    return refuse_environment("CUDASHM_EMULATED_LOG cannot be written");
  }
  if (environment().visible_devices.empty()) {
    return refuse(CUDA_ERROR_NO_DEVICE, "CUDASHM_EMULATED_DEVICE_COUNT or CUDA_VISIBLE_DEVICES leaves no device");
  }
  create_devices();
  set_initialised();
  return CUDA_SUCCESS;
}

}  // namespace cudashm::emulated
