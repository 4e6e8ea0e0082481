#include "call.h"
#include "copy.h"
#include "driver_api.h"
#include "stream.h"

using namespace cudashm::emulated;

namespace {

CopyEnd device(CUdeviceptr address) { return {address, Elsewhere::refused}; }
CopyEnd host(const void* address) { return {reinterpret_cast<uint64_t>(address), Elsewhere::host}; }
CopyEnd either(CUdeviceptr address) { return {address, Elsewhere::host_if_accessible}; }

/** An ordered copy is a copy: it is done before the call returns, so no later call can overtake it. */
CUresult copy_on(CUstream stream, CopyEnd to, CopyEnd from, size_t bytes) {
  if (const CUresult refusal = require_stream(stream)) return refusal;
  return copy(to, from, bytes);
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return call(Function::cuMemcpy, [&] { return copy(either(to), either(from), bytes); });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call(Function::cuMemcpyAsync, [&] { return copy_on(stream, either(to), either(from), bytes); });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return call(Function::cuMemcpyHtoD_v2, [&] { return copy(device(to), host(from), bytes); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call(Function::cuMemcpyHtoDAsync_v2, [&] { return copy_on(stream, device(to), host(from), bytes); });
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return call(Function::cuMemcpyDtoH_v2, [&] { return copy(host(to), device(from), bytes); });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call(Function::cuMemcpyDtoHAsync_v2, [&] { return copy_on(stream, host(to), device(from), bytes); });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return call(Function::cuMemcpyDtoD_v2, [&] { return copy(device(to), device(from), bytes); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call(Function::cuMemcpyDtoDAsync_v2, [&] { return copy_on(stream, device(to), device(from), bytes); });
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
  return call(Function::cuMemsetD8_v2, [&] { return fill(to, value, bytes); });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return call(Function::cuMemsetD8Async, [&] {
    if (const CUresult refusal = require_stream(stream)) return refusal;
    return fill(to, value, bytes);
  });
}
