#include "ranges.h"

namespace cudashm::emulated {

Range* find_range(DriverState& state, uint64_t pointer, uint64_t bytes) {
  auto next = state.ranges.upper_bound(pointer);
  if (next == state.ranges.begin()) return nullptr;
  auto& [base, range] = *std::prev(next);
  const uint64_t offset = pointer - base;
  if (offset >= range.byte_size || bytes > range.byte_size - offset) return nullptr;
  return &range;
}

uint64_t range_base(DriverState& state, uint64_t pointer) {
  return std::prev(state.ranges.upper_bound(pointer))->first;
}

}  // namespace cudashm::emulated
