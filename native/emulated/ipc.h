#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

CUresult export_handle(CUipcMemHandle* handle, CUdeviceptr pointer);
CUresult open_handle(CUdeviceptr* pointer, const CUipcMemHandle& handle, unsigned flags);
CUresult close_handle(CUdeviceptr pointer);

}  // namespace cudashm::emulated
