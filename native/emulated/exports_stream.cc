#include "call.h"
#include "driver_api.h"
#include "stream.h"

using namespace cudashm::emulated;

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return call(Function::cuStreamCreate, [&] { return create_stream(stream, flags); });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return call(Function::cuStreamCreateWithPriority, [&] { return create_stream(stream, flags); });
}

CUresult cuStreamQuery(CUstream stream) {
  return call(Function::cuStreamQuery, [&] { return require_stream(stream); });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return call(Function::cuStreamSynchronize, [&] { return require_stream(stream); });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return call(Function::cuStreamDestroy_v2, [&] { return destroy_stream(stream); });
}
