#include "pointer_attributes.h"

#include <cstring>

#include "driver_state.h"
#include "hash.h"
#include "ranges.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

template <typename Value>
CUresult put(void* target, Value value) {
  std::memcpy(target, &value, sizeof value);
  return CUDA_SUCCESS;
}

/** Writes the attribute of a pointer into the range, or what stands for "none" where the range is null. */
CUresult write_attribute(DriverState& state, const Range* range, void* value, int attribute, CUdeviceptr pointer) {
  const bool host = range != nullptr && range->kind == RangeKind::host;
  const bool device = range != nullptr && !host;
  switch (attribute) {
    case 1:  // CONTEXT
      return put(value, range != nullptr ? range->context : 0);
    case 2:  // MEMORY_TYPE: 1 host, 2 device
      return put(value, host ? 1U : device ? 2U : 0U);
    case 3:  // DEVICE_POINTER
      return put(value, range != nullptr ? pointer : CUdeviceptr{0});
    case 4:  // HOST_POINTER
      return put(value, host ? pointer : CUdeviceptr{0});
    case 6:  // SYNC_MEMOPS: a copy always is synchronous here
      return put(value, device ? 1U : 0U);
    case 7:  // BUFFER_ID: one number per allocation of the process
      return put(value, device ? hash_bytes(range->segment->nonce().data(), sizeof(Nonce), 0) : uint64_t{0});
    case 8:  // IS_MANAGED
      return put(value, 0U);
    case 9:  // DEVICE_ORDINAL; -2 as NVIDIA's driver says for none
      return put(value, range != nullptr ? range->device : -2);
    case 10:  // IS_LEGACY_CUDA_IPC_CAPABLE
      return put(value, static_cast<unsigned char>(device && range->kind == RangeKind::allocation));
    case 11:  // RANGE_START_ADDR
      return put(value, range != nullptr ? range_base(state, pointer) : uint64_t{0});
    case 12:  // RANGE_SIZE
      return put(value, range != nullptr ? static_cast<size_t>(range->byte_size) : size_t{0});
    case 13:  // MAPPED
      return put(value, static_cast<unsigned char>(range != nullptr));
    default:
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "pointer attribute %d is not emulated", attribute);
  }
}

}  // namespace

CUresult pointer_attribute(void* value, int attribute, CUdeviceptr pointer) {
  if (value == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the value output is null");
  const std::lock_guard lock(state().mutex);
  const Range* range = find_range(state(), pointer, 1);
  if (range == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer is in no memory of the driver");
  return write_attribute(state(), range, value, attribute, pointer);
}

CUresult pointer_attributes(unsigned count, const int* attributes, void** values, CUdeviceptr pointer) {
  if (attributes == nullptr || values == nullptr || count == 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "there are no attributes, or no outputs for them");
  }
  const std::lock_guard lock(state().mutex);
  const Range* range = find_range(state(), pointer, 1);
  for (unsigned index = 0; index < count; ++index) {
    if (values[index] == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "output %u is null", index);
    const CUresult result = write_attribute(state(), range, values[index], attributes[index], pointer);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace cudashm::emulated
