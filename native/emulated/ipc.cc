#include "ipc.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "context.h"
#include "driver_state.h"
#include "environment.h"
#include "exporter_file.h"
#include "ipc_handle.h"
#include "process_identity.h"
#include "ranges.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

CUresult refuse_without_ipc() {
  if (!environment().no_ipc) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_NOT_SUPPORTED, "CUDASHM_EMULATED_NO_IPC is set");
}

int visible_ordinal(const DriverState& state, int physical_index) {
  for (size_t ordinal = 0; ordinal < state.devices.size(); ++ordinal) {
    if (state.devices[ordinal].physical_index == physical_index) return static_cast<int>(ordinal);
  }
  return -1;
}

/** What an open is about to do, settled while the lock is held. */
struct Opening {
  ContextId context = 0;
  int device = -1;
};

CUresult prepare(DriverState& state, int physical_device, Opening& opening) {
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state, opening.context, context)) return refusal;
  opening.device = visible_ordinal(state, physical_device);
  if (opening.device < 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the exporter's GPU is not visible to this process");
  }
  if (opening.device != context->device && environment().no_peer) {
    return refuse(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
                  "the memory is on device %d, the current context on device %d, and CUDASHM_EMULATED_NO_PEER is set",
                  opening.device, context->device);
  }
  return CUDA_SUCCESS;
}

/** Counts one more open of memory that this context has mapped already. False where it has not. */
bool open_again(DriverState& state, const Opening& opening, const Nonce& nonce, CUdeviceptr* pointer,
                CUresult& result) {
  const auto known = state.imports.find({nonce, opening.context});
  if (known != state.imports.end()) {
    if (environment().old_reopen) {
      result = refuse(CUDA_ERROR_ALREADY_MAPPED, "the handle is open in this context already");
      return true;
    }
    ++state.ranges.at(known->second).opens;
    *pointer = known->second;
    result = CUDA_SUCCESS;
    return true;
  }
  const int device = state.contexts.at(opening.context).device;
  for (auto other = state.imports.lower_bound({nonce, 0});
       other != state.imports.end() && other->first.first == nonce; ++other) {
    if (state.contexts.at(other->first.second).device == device) {
      result = refuse(CUDA_ERROR_INVALID_HANDLE, "the handle is open in another context of the same device");
      return true;
    }
  }
  return false;
}

}  // namespace

CUresult export_handle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  if (const CUresult refusal = refuse_without_ipc()) return refusal;
  if (handle == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the handle output is null");
  static const auto started = own_start_time();
  if (!started) return refuse(CUDA_ERROR_NOT_SUPPORTED, "/proc/self cannot be read; sharing needs /proc");
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  const Range* range = find_range(state(), pointer, 1);
  if (range == nullptr || range->kind != RangeKind::allocation) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer is not device memory that this process allocated");
  }
  const SharedSegment& segment = *range->segment;
  *handle = encode_handle({getpid(), segment.file(), segment.physical_device(), *started, segment.nonce()});
  return CUDA_SUCCESS;
}

CUresult open_handle(CUdeviceptr* pointer, const CUipcMemHandle& handle, unsigned flags) {
  if (const CUresult refusal = refuse_without_ipc()) return refusal;
  if (pointer == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer output is null");
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the flags must be CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS");
  }
  if (const CUresult refusal = require_context()) return refusal;
  const auto location = decode_handle(handle);
  if (!location) return refuse(CUDA_ERROR_INVALID_VALUE, "the bytes are no handle of the emulated driver");
  if (location->pid == getpid()) {
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "the exporter is this process, or has its number in another namespace");
  }
  // The exporter is asked each time, also for memory that is mapped already: a stale handle stays stale.
  ExporterFile found = open_exporter_file(*location);
  if (found.result != CUDA_SUCCESS) return found.result;

  Opening opening;
  CUresult result = CUDA_SUCCESS;
  {
    const std::lock_guard lock(state().mutex);
    if (const CUresult refusal = prepare(state(), location->physical_device, opening)) return refusal;
    if (open_again(state(), opening, location->nonce, pointer, result)) return result;
  }
  std::shared_ptr<SharedSegment> segment = SharedSegment::map(std::move(found.file), found.header);
  if (segment == nullptr) {
    return refuse(CUDA_ERROR_OUT_OF_MEMORY, "mapping the memory failed: %s", std::strerror(errno));
  }
  segment->drop_file();

  const std::lock_guard lock(state().mutex);
  // While the memory was being mapped the context may have gone or another thread have opened the same handle.
  if (const CUresult refusal = prepare(state(), location->physical_device, opening)) return refusal;
  if (open_again(state(), opening, location->nonce, pointer, result)) return result;
  *pointer = segment->device_pointer();
  Range range{RangeKind::import, segment->byte_size(), opening.device, opening.context, segment->bytes(), segment,
              segment, 1};
  state().devices[static_cast<size_t>(opening.device)].used_bytes += segment->byte_size();
  state().imports.emplace(std::pair{segment->nonce(), opening.context}, *pointer);
  state().ranges.emplace(*pointer, std::move(range));
  return CUDA_SUCCESS;
}

CUresult close_handle(CUdeviceptr pointer) {
  if (const CUresult refusal = refuse_without_ipc()) return refusal;
  Garbage garbage;
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  const auto range = state().ranges.find(pointer);
  if (range == state().ranges.end() || range->second.kind != RangeKind::import) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the pointer did not come from cuIpcOpenMemHandle");
  }
  if (range->second.context != id) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "the handle was opened in another context");
  }
  if (--range->second.opens == 0) erase_range(state(), range, garbage);
  return CUDA_SUCCESS;
}

}  // namespace cudashm::emulated
