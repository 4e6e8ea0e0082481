#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

/** cuInit: refuses with 1 and a text on stderr while a CUDASHM_EMULATED_* variable cannot be used. */
CUresult start(unsigned flags);

}  // namespace cudashm::emulated
