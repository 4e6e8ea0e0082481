#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

CUresult pointer_attribute(void* value, int attribute, CUdeviceptr pointer);

/** Unlike the single form, answers zeros for a pointer that is not the driver's. */
CUresult pointer_attributes(unsigned count, const int* attributes, void** values, CUdeviceptr pointer);

}  // namespace cudashm::emulated
