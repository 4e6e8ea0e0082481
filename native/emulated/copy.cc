#include "copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "context.h"
#include "driver_state.h"
#include "ranges.h"
#include "reason.h"

namespace cudashm::emulated {
namespace {

/** One end of a copy as the CPU can reach it, kept mapped while this exists. */
struct View {
  std::byte* bytes = nullptr;
  std::shared_ptr<void> owner;
  bool doubtful = false;
};

CUresult resolve(DriverState& state, CopyEnd end, size_t bytes, View& view) {
  if (Range* range = find_range(state, end.address, bytes)) {
    view.bytes = range->bytes + (end.address - range_base(state, end.address));
    view.owner = range->owner;
    return CUDA_SUCCESS;
  }
  const bool overruns = find_range(state, end.address, 1) != nullptr;
  if (overruns || end.elsewhere == Elsewhere::refused || end.address == 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE, overruns ? "the copy reaches past the end of an allocation"
                                                     : "the pointer is in no memory of the driver");
  }
  view.bytes = reinterpret_cast<std::byte*>(end.address);
  view.doubtful = end.elsewhere == Elsewhere::host_if_accessible;
  return CUDA_SUCCESS;
}

/** Lets the kernel do the copy, which answers an error where the processor would answer a signal. */
bool copy_doubtful(std::byte* to, std::byte* from, size_t bytes, bool to_is_doubtful) {
  while (bytes > 0) {
    iovec local{to_is_doubtful ? from : to, bytes};
    iovec remote{to_is_doubtful ? to : from, bytes};
    const ssize_t done = to_is_doubtful ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0)
                                        : process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (done < 0 && (errno == ENOSYS || errno == EPERM)) {
      // A sandbox forbids the call: then the pointer is trusted, as memcpy would.
      std::memmove(to, from, bytes);
      return true;
    }
    if (done <= 0) return false;
    to += done;
    from += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace

CUresult copy(CopyEnd to, CopyEnd from, size_t bytes) {
  View target;
  View source;
  {
    const std::lock_guard lock(state().mutex);
    ContextId id = 0;
    Context* context = nullptr;
    if (const CUresult refusal = require_context(state(), id, context)) return refusal;
    if (bytes == 0) return CUDA_SUCCESS;
    if (const CUresult refusal = resolve(state(), to, bytes, target)) return refusal;
    if (const CUresult refusal = resolve(state(), from, bytes, source)) return refusal;
  }
  if (!target.doubtful && !source.doubtful) {
    std::memmove(target.bytes, source.bytes, bytes);
    return CUDA_SUCCESS;
  }
  if (copy_doubtful(target.bytes, source.bytes, bytes, target.doubtful)) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_VALUE, "a pointer is neither memory of the driver nor accessible host memory");
}

CUresult fill(CUdeviceptr to, unsigned char value, size_t bytes) {
  View target;
  {
    const std::lock_guard lock(state().mutex);
    ContextId id = 0;
    Context* context = nullptr;
    if (const CUresult refusal = require_context(state(), id, context)) return refusal;
    if (bytes == 0) return CUDA_SUCCESS;
    if (const CUresult refusal = resolve(state(), {to, Elsewhere::refused}, bytes, target)) return refusal;
  }
  std::memset(target.bytes, value, bytes);
  return CUDA_SUCCESS;
}

}  // namespace cudashm::emulated
