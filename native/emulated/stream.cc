#include "stream.h"

#include "context.h"
#include "driver_state.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

// As for contexts: an address no processor accepts.
constexpr uint64_t stream_id_base = 0xC0DB'0000'0000'0000;
constexpr uint64_t last_builtin = 2;

CUresult refuse_unknown() { return refuse(CUDA_ERROR_INVALID_HANDLE, "there is no such stream"); }

}  // namespace

CUresult create_stream(CUstream* stream, unsigned flags) {
  if (stream == nullptr || flags > 1) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the stream output is null or the flags are not 0 or 1");
  }
  const std::lock_guard lock(state().mutex);
  ContextId context_id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), context_id, context)) return refusal;
  const uint64_t id = stream_id_base + ++state().last_id;
  state().streams.emplace(id, context_id);
  *stream = reinterpret_cast<CUstream>(id);
  return CUDA_SUCCESS;
}

CUresult require_stream(CUstream stream) {
  const std::lock_guard lock(state().mutex);
  ContextId context_id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), context_id, context)) return refusal;
  const auto id = reinterpret_cast<uint64_t>(stream);
  return id <= last_builtin || state().streams.contains(id) ? CUDA_SUCCESS : refuse_unknown();
}

CUresult destroy_stream(CUstream stream) {
  const std::lock_guard lock(state().mutex);
  return state().streams.erase(reinterpret_cast<uint64_t>(stream)) == 1 ? CUDA_SUCCESS : refuse_unknown();
}

}  // namespace cudashm::emulated
