#include "driver_state.h"

#include "environment.h"

namespace cudashm::emulated {

DriverState& state() {
  // Never destroyed: threads may still be inside a call while the process exits.
  static DriverState& instance = *new DriverState;
  return instance;
}

void create_devices() {
  const std::lock_guard lock(state().mutex);
  if (!state().devices.empty()) return;
  for (const int physical_index : environment().visible_devices) state().devices.push_back({physical_index});
}

void erase_range(DriverState& state, std::map<uint64_t, Range>::iterator range, Garbage& garbage) {
  Range& gone = range->second;
  if (gone.kind != RangeKind::host) state.devices[static_cast<size_t>(gone.device)].used_bytes -= gone.byte_size;
  if (gone.kind == RangeKind::import) state.imports.erase({gone.segment->nonce(), gone.context});
  garbage.push_back(std::move(gone.owner));
  garbage.push_back(std::move(gone.segment));
  state.ranges.erase(range);
}

}  // namespace cudashm::emulated
