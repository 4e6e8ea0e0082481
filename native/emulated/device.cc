#include "device.h"

#include <cstdio>
#include <cstring>

#include "context.h"
#include "device_attributes.h"
#include "device_uuid.h"
#include "driver_state.h"
#include "environment.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

constexpr int pci_bus_id_size = 13;

/** Runs the body with the device's physical index, or refuses a null output and an ordinal that does not exist. */
template <typename Body>
CUresult with_device(const void* output, CUdevice device, Body body) {
  if (output == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the output is null");
  int physical_index = 0;
  {
    const std::lock_guard lock(state().mutex);
    if (const CUresult refusal = require_device(state(), device)) return refusal;
    physical_index = state().devices[static_cast<size_t>(device)].physical_index;
  }
  return body(physical_index);
}

void write_pci_bus_id(char* id, size_t size, int physical_index) {
  std::snprintf(id, size, "0000:%02x:00.0", pci_bus(physical_index));
}

}  // namespace

CUresult device_count(int* count) {
  if (count == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the count output is null");
  const std::lock_guard lock(state().mutex);
  *count = static_cast<int>(state().devices.size());
  return CUDA_SUCCESS;
}

CUresult device_of_ordinal(CUdevice* device, int ordinal) {
  return with_device(device, ordinal, [&](int) {
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult device_name(char* name, int length, CUdevice device) {
  return with_device(name, device, [&](int) {
    if (length <= 0) return refuse(CUDA_ERROR_INVALID_VALUE, "the length is not positive");
    std::snprintf(name, static_cast<size_t>(length), "%s", "cudashm emulated GPU");
    return CUDA_SUCCESS;
  });
}

CUresult device_uuid(CUuuid* uuid, CUdevice device) {
  return with_device(uuid, device, [&](int physical_index) {
    *uuid = device_uuid(environment().uuid_seed, physical_index);
    return CUDA_SUCCESS;
  });
}

CUresult device_total_memory(size_t* bytes, CUdevice device) {
  return with_device(bytes, device, [&](int) {
    *bytes = environment().memory_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult device_attribute(int* value, int attribute, CUdevice device) {
  return with_device(value, device, [&](int physical_index) {
    if (attribute <= 0) return refuse(CUDA_ERROR_INVALID_VALUE, "attributes are numbered from 1");
    *value = attribute_value(attribute, physical_index, !environment().no_ipc);
    return CUDA_SUCCESS;
  });
}

CUresult device_pci_bus_id(char* id, int length, CUdevice device) {
  return with_device(id, device, [&](int physical_index) {
    if (length < pci_bus_id_size) {
      return refuse(CUDA_ERROR_INVALID_VALUE, "a PCI bus id needs %d bytes", pci_bus_id_size);
    }
    write_pci_bus_id(id, static_cast<size_t>(length), physical_index);
    return CUDA_SUCCESS;
  });
}

CUresult device_of_pci_bus_id(CUdevice* device, const char* id) {
  if (device == nullptr || id == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "an argument is null");
  const std::lock_guard lock(state().mutex);
  for (size_t ordinal = 0; ordinal < state().devices.size(); ++ordinal) {
    char candidate[pci_bus_id_size];
    write_pci_bus_id(candidate, sizeof candidate, state().devices[ordinal].physical_index);
    if (std::strcmp(candidate, id) != 0) continue;
    *device = static_cast<CUdevice>(ordinal);
    return CUDA_SUCCESS;
  }
  return refuse(CUDA_ERROR_INVALID_DEVICE, "no device has this PCI bus id");
}

CUresult can_access_peer(int* can, CUdevice device, CUdevice peer) {
  return with_device(can, device, [&](int) {
    return with_device(can, peer, [&](int) {
      // A device is not its own peer.
      *can = device != peer && !environment().no_peer ? 1 : 0;
      return CUDA_SUCCESS;
    });
  });
}

}  // namespace cudashm::emulated
