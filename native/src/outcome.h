#pragma once

#include "driver_api.h"
#include "error.h"

namespace cudashm {

// What one driver call answered; `call` is the function's name as NVIDIA's documents have it.
struct Outcome {
  CUresult code = kCudaSuccess;
  const char* call = "";

  bool ok() const { return code == kCudaSuccess; }
};

// Asks the driver for the name of the result. To be called on a lane.
inline Failure Refused(const DriverApi& api, const Outcome& outcome) {
  const char* name = nullptr;
  const bool named = api.get_error_name(outcome.code, &name) == kCudaSuccess && name != nullptr;
  return {Failure::Kind::refused, outcome.code, named ? name : "CUDA_ERROR_UNKNOWN", outcome.call};
}

}  // namespace cudashm
