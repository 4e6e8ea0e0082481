#include "call.h"
#include "device.h"
#include "driver_api.h"

using namespace cudashm::emulated;

CUresult cuDeviceGetCount(int* count) {
  return call(Function::cuDeviceGetCount, [&] { return device_count(count); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call(Function::cuDeviceGet, [&] { return device_of_ordinal(device, ordinal); });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return call(Function::cuDeviceGetName, [&] { return device_name(name, length, device); });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return call(Function::cuDeviceGetUuid, [&] { return device_uuid(uuid, device); });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return call(Function::cuDeviceGetUuid_v2, [&] { return device_uuid(uuid, device); });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return call(Function::cuDeviceTotalMem_v2, [&] { return device_total_memory(bytes, device); });
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  return call(Function::cuDeviceGetAttribute, [&] { return device_attribute(value, attribute, device); });
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return call(Function::cuDeviceGetPCIBusId, [&] { return device_pci_bus_id(id, length, device); });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return call(Function::cuDeviceGetByPCIBusId, [&] { return device_of_pci_bus_id(device, id); });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return call(Function::cuDeviceCanAccessPeer, [&] { return can_access_peer(can, device, peer); });
}
