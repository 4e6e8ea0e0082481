#include "call.h"

#include <thread>

#include "call_counters.h"
#include "call_log.h"
#include "environment.h"
#include "fault_file.h"
#include "injections.h"
#include "lifecycle.h"

namespace cudashm::emulated {
namespace {

CUresult force(CUresult fault, const char* variable) {
  note_if_sticky(fault);
  return refuse(fault, "forced by %s", variable);
}

CUresult refusal_before_body(Function function, Stage stage, uint64_t number) {
  if (stage != Stage::always) {
    if (const CUresult standing = standing_refusal()) return standing;
  }
  if (const auto fault = injected(environment().faults, function, number)) {
    return force(static_cast<CUresult>(*fault), "CUDASHM_EMULATED_FAULTS");
  }
  if (const auto fault = fault_of_file(function)) return force(*fault, "CUDASHM_EMULATED_FAULTS_FILE");
  if (stage == Stage::initialised && !initialised()) {
    return refuse(CUDA_ERROR_NOT_INITIALIZED, "cuInit has not succeeded in this process");
  }
  return CUDA_SUCCESS;
}

}  // namespace

Call::Call(Function function, Stage stage) : function_(function) {
  clear_reason();
  open_call_log();
  timed_ = call_log_is_open();
  if (timed_) start_ = std::chrono::steady_clock::now();
  const uint64_t number = count_call(function);
  if (const auto delay = injected(environment().delays, function, number)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(*delay));
  }
  refusal_ = refusal_before_body(function, stage, number);
}

CUresult Call::end(CUresult result) {
  if (result == CUDA_SUCCESS) count_success(function_);
  if (timed_) log_call(function_, result, std::chrono::steady_clock::now() - start_, reason());
  return result;
}

}  // namespace cudashm::emulated
