#include "memory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "context.h"
#include "driver_state.h"
#include "environment.h"
#include "ranges.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

/** A share of a device's memory that is taken before the memory is made, and given back unless kept. */
class Reservation {
 public:
  Reservation() = default;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (bytes_ == 0) return;
    const std::lock_guard lock(state().mutex);
    state().devices[static_cast<size_t>(device_)].used_bytes -= bytes_;
  }

  /** The lock is held. */
  CUresult take(DriverState& state, int device, uint64_t bytes) {
    Device& entry = state.devices[static_cast<size_t>(device)];
    const uint64_t total = environment().memory_bytes;
    const uint64_t left = entry.used_bytes < total ? total - entry.used_bytes : 0;
    if (bytes > left) {
      return refuse(CUDA_ERROR_OUT_OF_MEMORY, "device %d has %llu bytes left of its %llu", device,
                    static_cast<unsigned long long>(left), static_cast<unsigned long long>(total));
    }
    entry.used_bytes += bytes;
    device_ = device;
    bytes_ = bytes;
    return CUDA_SUCCESS;
  }

  void keep() { bytes_ = 0; }

 private:
  int device_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

CUresult memory_info(size_t* free_bytes, size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "an output is null");
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  const uint64_t used = state().devices[static_cast<size_t>(context->device)].used_bytes;
  *total_bytes = environment().memory_bytes;
  *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* pointer, size_t bytes) {
  if (pointer == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer output is null");
  if (bytes == 0) return refuse(CUDA_ERROR_INVALID_VALUE, "an allocation has at least 1 byte");
  Reservation reservation;
  ContextId id = 0;
  int device = 0;
  int physical_device = 0;
  {
    const std::lock_guard lock(state().mutex);
    Context* context = nullptr;
    if (const CUresult refusal = require_context(state(), id, context)) return refusal;
    device = context->device;
    physical_device = state().devices[static_cast<size_t>(device)].physical_index;
    if (const CUresult refusal = reservation.take(state(), device, bytes)) return refusal;
  }
  std::shared_ptr<SharedSegment> segment = SharedSegment::create(bytes, physical_device);
  if (segment == nullptr) {
    return refuse(CUDA_ERROR_OUT_OF_MEMORY, "the system gave no memory for the allocation: %s%s", std::strerror(errno),
                  errno == EMFILE ? "; each allocation holds one file descriptor, so raise `ulimit -n`" : "");
  }
  const std::lock_guard lock(state().mutex);
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  *pointer = segment->device_pointer();
  state().ranges.emplace(*pointer,
                         Range{RangeKind::allocation, bytes, device, id, segment->bytes(), segment, segment, 0});
  reservation.keep();
  return CUDA_SUCCESS;
}

CUresult free_memory(CUdeviceptr pointer) {
  Garbage garbage;
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  if (pointer == 0) return CUDA_SUCCESS;
  const auto range = state().ranges.find(pointer);
  if (range == state().ranges.end() || range->second.kind != RangeKind::allocation) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer did not come from cuMemAlloc");
  }
  erase_range(state(), range, garbage);
  return CUDA_SUCCESS;
}

CUresult address_range(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  const Range* range = find_range(state(), pointer, 1);
  if (range == nullptr || range->kind == RangeKind::host) {
    return refuse(CUDA_ERROR_NOT_FOUND, "the pointer is in no device memory");
  }
  if (base != nullptr) *base = range_base(state(), pointer);
  if (bytes != nullptr) *bytes = range->byte_size;
  return CUDA_SUCCESS;
}

CUresult allocate_host(void** pointer, size_t bytes, unsigned flags) {
  constexpr unsigned known_flags = 7;  // portable, mapped, write-combined
  if (pointer == nullptr || bytes == 0 || (flags & ~known_flags) != 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "host memory needs an output, at least 1 byte and known flags");
  }
  std::shared_ptr<void> memory(std::calloc(1, bytes), std::free);
  if (memory == nullptr) return refuse(CUDA_ERROR_OUT_OF_MEMORY, "the system gave no host memory");
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  *pointer = memory.get();
  state().ranges.emplace(reinterpret_cast<uint64_t>(memory.get()),
                         Range{RangeKind::host, bytes, context->device, id, static_cast<std::byte*>(memory.get()),
                               memory, nullptr, 0});
  return CUDA_SUCCESS;
}

CUresult free_host(void* pointer) {
  Garbage garbage;
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  const auto range = state().ranges.find(reinterpret_cast<uint64_t>(pointer));
  if (range == state().ranges.end() || range->second.kind != RangeKind::host) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer did not come from cuMemHostAlloc");
  }
  erase_range(state(), range, garbage);
  return CUDA_SUCCESS;
}

CUresult host_device_pointer(CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
  if (device_pointer == nullptr || flags != 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the output is null or the flags are not 0");
  }
  const std::lock_guard lock(state().mutex);
  const Range* range = find_range(state(), reinterpret_cast<uint64_t>(pointer), 1);
  if (range == nullptr || range->kind != RangeKind::host) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer did not come from cuMemHostAlloc");
  }
  *device_pointer = reinterpret_cast<uint64_t>(pointer);
  return CUDA_SUCCESS;
}

}  // namespace cudashm::emulated
