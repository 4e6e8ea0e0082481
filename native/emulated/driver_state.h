#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "shared_segment.h"

namespace cudashm::emulated {

/** Stands for a CUcontext; never reused and never an address that can be read. */
using ContextId = uint64_t;

struct Context {
  int device;
  unsigned flags;
  bool primary;
};

struct Device {
  int physical_index;
  uint64_t used_bytes = 0;
  unsigned primary_retains = 0;
  unsigned primary_flags = 0;
};

enum class RangeKind { allocation, import, host };

/** A run of addresses that the driver handed out. */
struct Range {
  RangeKind kind;
  uint64_t byte_size;
  /** Where the memory is; for an import the exporter's device, which may be another than the context's. */
  int device;
  ContextId context;
  std::byte* bytes;
  /** Keeps the memory mapped while a copy runs, though it be freed meanwhile. */
  std::shared_ptr<void> owner;
  /** Null for host memory. */
  std::shared_ptr<SharedSegment> segment;
  /** Opens of an import that have not been closed. */
  uint64_t opens = 0;
};

/**
 * Everything the driver remembers in this process. The mutex is held for look-ups and changes of these tables
 * only: never over a delay, a system call or a copy, so that one slow call keeps no other waiting.
 */
struct DriverState {
  std::mutex mutex;
  std::vector<Device> devices;
  std::map<ContextId, Context> contexts;
  std::map<uint64_t, Range> ranges;
  /** Memory that is mapped from other processes, by its nonce and the context that opened it. */
  std::map<std::pair<Nonce, ContextId>, uint64_t> imports;
  std::map<uint64_t, ContextId> streams;
  uint64_t last_id = 0;
};

DriverState& state();

/** Makes the device table; called once, by cuInit. */
void create_devices();

/** What was removed from the tables under the lock, to be unmapped after it: that takes system calls. */
using Garbage = std::vector<std::shared_ptr<void>>;

/** Forgets a range and its share of its device's memory. The lock is held. */
void erase_range(DriverState& state, std::map<uint64_t, Range>::iterator range, Garbage& garbage);

}  // namespace cudashm::emulated
