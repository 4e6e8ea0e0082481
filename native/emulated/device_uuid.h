#pragma once

#include <string>

#include "driver_api.h"

namespace cudashm::emulated {

/** The UUID of a physical device: the same in every process that has the same seed. */
CUuuid device_uuid(const std::string& seed, int physical_index);

/** The same as nvidia-smi would print it, starting `GPU-`. */
std::string device_uuid_text(const std::string& seed, int physical_index);

}  // namespace cudashm::emulated
