#include "call.h"
#include "driver_api.h"
#include "ipc.h"

using namespace cudashm::emulated;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return call(Function::cuIpcGetMemHandle, [&] { return export_handle(handle, pointer); });
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  return call(Function::cuIpcOpenMemHandle, [&] { return open_handle(pointer, handle, flags); });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  return call(Function::cuIpcOpenMemHandle_v2, [&] { return open_handle(pointer, handle, flags); });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return call(Function::cuIpcCloseMemHandle, [&] { return close_handle(pointer); });
}
