#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

/**
 * Notes why this thread's call is refused and answers `result`. The sentence goes into the call log and to
 * cudashm_emulated_reason, so it never holds a device pointer or a part of a handle.
 */
__attribute__((format(printf, 2, 3))) CUresult refuse(CUresult result, const char* format, ...);

const char* reason();
void clear_reason();

}  // namespace cudashm::emulated
