#include "call.h"
#include "driver_api.h"
#include "environment.h"
#include "error_names.h"
#include "function_table.h"
#include "start.h"

using namespace cudashm::emulated;

CUresult cuInit(unsigned flags) {
  return call(Function::cuInit, Stage::before_init, [&] { return start(flags); });
}

CUresult cuDriverGetVersion(int* version) {
  return call(Function::cuDriverGetVersion, Stage::before_init, [&] {
    if (version == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the version output is null");
    *version = environment().driver_version;
    return CUDA_SUCCESS;
  });
}

namespace {

CUresult write_error_text(CUresult error, const char** output, const char* ErrorName::* field) {
  if (output == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the text output is null");
  const ErrorName* found = find_error(error);
  *output = found == nullptr ? nullptr : found->*field;
  return found == nullptr ? refuse(CUDA_ERROR_INVALID_VALUE, "CUDA has no result of this number") : CUDA_SUCCESS;
}

CUresult write_proc_address(const char* name, void** address, int version, int* status) {
  if (name == nullptr || address == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "an argument is null");
  const ProcAddress found = find_proc_address(name, version);
  *address = found.address;
  if (status != nullptr) *status = found.status;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** name) {
  return call(Function::cuGetErrorName, Stage::always,
              [&] { return write_error_text(error, name, &ErrorName::name); });
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return call(Function::cuGetErrorString, Stage::always,
              [&] { return write_error_text(error, text, &ErrorName::text); });
}

CUresult cuGetProcAddress(const char* name, void** address, int version, unsigned long long) {
  return call(Function::cuGetProcAddress, Stage::always,
              [&] { return write_proc_address(name, address, version, nullptr); });
}

CUresult cuGetProcAddress_v2(const char* name, void** address, int version, unsigned long long, int* status) {
  return call(Function::cuGetProcAddress_v2, Stage::always,
              [&] { return write_proc_address(name, address, version, status); });
}
