#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

CUresult memory_info(size_t* free_bytes, size_t* total_bytes);
CUresult allocate(CUdeviceptr* pointer, size_t bytes);
CUresult free_memory(CUdeviceptr pointer);
CUresult address_range(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer);
CUresult allocate_host(void** pointer, size_t bytes, unsigned flags);
CUresult free_host(void* pointer);
CUresult host_device_pointer(CUdeviceptr* device_pointer, void* pointer, unsigned flags);

}  // namespace cudashm::emulated
