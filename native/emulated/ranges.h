#pragma once

#include <cstddef>
#include <cstdint>

#include "driver_state.h"

namespace cudashm::emulated {

/** The range that all of [pointer, pointer + bytes) lies in; null where there is none. The lock is held. */
Range* find_range(DriverState& state, uint64_t pointer, uint64_t bytes);

/** The first address of the range that the pointer lies in, which must exist. The lock is held. */
uint64_t range_base(DriverState& state, uint64_t pointer);

}  // namespace cudashm::emulated
