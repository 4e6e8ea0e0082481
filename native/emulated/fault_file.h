#pragma once

#include <optional>

#include "driver_api.h"
#include "function_table.h"

namespace cudashm::emulated {

/**
 * What CUDASHM_EMULATED_FAULTS_FILE forces on this call, if anything. The file is read again when it has changed, and
 * calls are counted from then on. While it cannot be used it forces 1 on every call.
 */
std::optional<CUresult> fault_of_file(Function function);

}  // namespace cudashm::emulated
