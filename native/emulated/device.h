#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

CUresult device_count(int* count);
CUresult device_of_ordinal(CUdevice* device, int ordinal);
CUresult device_name(char* name, int length, CUdevice device);
CUresult device_uuid(CUuuid* uuid, CUdevice device);
CUresult device_total_memory(size_t* bytes, CUdevice device);
CUresult device_attribute(int* value, int attribute, CUdevice device);
CUresult device_pci_bus_id(char* id, int length, CUdevice device);
CUresult device_of_pci_bus_id(CUdevice* device, const char* id);
CUresult can_access_peer(int* can, CUdevice device, CUdevice peer);

}  // namespace cudashm::emulated
