#pragma once

#include <chrono>
#include <new>

#include "driver_api.h"
#include "function_table.h"
#include "reason.h"

namespace cudashm::emulated {

/** When a function may be called: some answer before cuInit and after a fault, as the real ones do. */
enum class Stage { always, before_init, initialised };

/** The part of a call that is the same for every function: count, delay, forced fault, standing refusal, log. */
class Call {
 public:
  Call(Function function, Stage stage);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /** Not success: the answer, without the function's body having run. */
  CUresult refusal() const { return refusal_; }

  CUresult end(CUresult result);

 private:
  Function function_;
  CUresult refusal_ = CUDA_SUCCESS;
  bool timed_;
  std::chrono::steady_clock::time_point start_{};
};

/** Runs the body of an exported function; no exception leaves it. */
template <typename Body>
CUresult call(Function function, Stage stage, Body body) noexcept {
  Call call(function, stage);
  if (call.refusal() != CUDA_SUCCESS) return call.end(call.refusal());
  CUresult result;
  try {
    result = body();
  } catch (const std::bad_alloc&) {
    result = refuse(CUDA_ERROR_OUT_OF_MEMORY, "the process has no memory left");
  } catch (...) {
    result = refuse(CUDA_ERROR_UNKNOWN, "the emulated driver met an error of its own");
  }
  return call.end(result);
}

template <typename Body>
CUresult call(Function function, Body body) noexcept {
  return call(function, Stage::initialised, body);
}

}  // namespace cudashm::emulated
