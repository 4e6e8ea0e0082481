#include "call.h"
#include "driver_api.h"
#include "memory.h"
#include "pointer_attributes.h"

using namespace cudashm::emulated;

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return call(Function::cuMemGetInfo_v2, [&] { return memory_info(free_bytes, total_bytes); });
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return call(Function::cuMemAlloc_v2, [&] { return allocate(pointer, bytes); });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return call(Function::cuMemFree_v2, [&] { return free_memory(pointer); });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  return call(Function::cuMemGetAddressRange_v2, [&] { return address_range(base, bytes, pointer); });
}

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return call(Function::cuMemHostAlloc, [&] { return allocate_host(pointer, bytes, flags); });
}

CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return call(Function::cuMemAllocHost_v2, [&] { return allocate_host(pointer, bytes, 0); });
}

CUresult cuMemFreeHost(void* pointer) {
  return call(Function::cuMemFreeHost, [&] { return free_host(pointer); });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer, unsigned flags) {
  return call(Function::cuMemHostGetDevicePointer_v2,
              [&] { return host_device_pointer(device_pointer, pointer, flags); });
}

CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer) {
  return call(Function::cuPointerGetAttribute, [&] { return pointer_attribute(value, attribute, pointer); });
}

CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr pointer) {
  return call(Function::cuPointerGetAttributes,
              [&] { return pointer_attributes(count, attributes, values, pointer); });
}
