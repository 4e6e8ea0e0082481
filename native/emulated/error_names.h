#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

struct ErrorName {
  CUresult code;
  const char* name;
  const char* text;
};

/** Null for a number that CUDA does not use. */
const ErrorName* find_error(CUresult code);

}  // namespace cudashm::emulated
