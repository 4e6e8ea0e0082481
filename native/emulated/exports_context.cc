#include "call.h"
#include "context.h"
#include "driver_api.h"

using namespace cudashm::emulated;

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call(Function::cuDevicePrimaryCtxRetain, [&] { return retain_primary(context, device); });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call(Function::cuDevicePrimaryCtxRelease_v2, [&] { return release_primary(device); });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return call(Function::cuDevicePrimaryCtxReset_v2, [&] { return reset_primary(device); });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return call(Function::cuDevicePrimaryCtxSetFlags_v2, [&] { return set_primary_flags(device, flags); });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call(Function::cuDevicePrimaryCtxGetState, [&] { return primary_state(device, flags, active); });
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return call(Function::cuCtxCreate_v2, [&] { return create_context(context, flags, device); });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return call(Function::cuCtxDestroy_v2, [&] { return destroy_context(context); });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return call(Function::cuCtxPushCurrent_v2, [&] { return push_current(context); });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return call(Function::cuCtxPopCurrent_v2, [&] { return pop_current(context); });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return call(Function::cuCtxGetCurrent, [&] { return get_current(context); });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call(Function::cuCtxSetCurrent, [&] { return set_current(context); });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return call(Function::cuCtxGetDevice, [&] { return get_device(device); });
}

CUresult cuCtxGetFlags(unsigned* flags) {
  return call(Function::cuCtxGetFlags, [&] { return get_flags(flags); });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return call(Function::cuCtxGetApiVersion, [&] { return api_version(context, version); });
}

CUresult cuCtxSynchronize(void) {
  return call(Function::cuCtxSynchronize, [&] { return synchronize(); });
}
