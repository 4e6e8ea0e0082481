#include "observation.h"

#include <string_view>

#include "call_counters.h"
#include "driver_state.h"
#include "reason.h"

using namespace cudashm::emulated;

const char cudashm_emulated_driver[] = "cudashm emulated driver, handles of version 1";

int cudashm_emulated_counter(const char* function, uint64_t* calls_made, uint64_t* calls_successful) {
  const auto found = function == nullptr ? std::nullopt : find_function(function);
  if (!found) return 1;
  if (calls_made != nullptr) *calls_made = calls(*found);
  if (calls_successful != nullptr) *calls_successful = successes(*found);
  return 0;
}

namespace {

struct Sums {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t opens = 0;
};

Sums sum(const DriverState& state, RangeKind kind) {
  Sums sums;
  for (const auto& [base, range] : state.ranges) {
    if (range.kind != kind) continue;
    ++sums.count;
    sums.bytes += range.byte_size;
    sums.opens += range.opens;
  }
  return sums;
}

}  // namespace

int cudashm_emulated_gauge(const char* name, uint64_t* value) {
  if (name == nullptr || value == nullptr) return 1;
  const std::lock_guard lock(state().mutex);
  const std::string_view asked = name;
  if (asked == "allocations") *value = sum(state(), RangeKind::allocation).count;
  else if (asked == "allocated_bytes") *value = sum(state(), RangeKind::allocation).bytes;
  else if (asked == "imports") *value = sum(state(), RangeKind::import).count;
  else if (asked == "imported_bytes") *value = sum(state(), RangeKind::import).bytes;
  else if (asked == "import_opens") *value = sum(state(), RangeKind::import).opens;
  else if (asked == "contexts") *value = state().contexts.size();
  else if (asked == "streams") *value = state().streams.size();
  else return 1;
  return 0;
}

const char* cudashm_emulated_reason(void) { return reason(); }
