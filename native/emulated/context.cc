#include "context.h"

#include <array>

#include "reason.h"

namespace cudashm::emulated {
namespace {

// Addresses no processor accepts, so that reading through a context crashes as it would not by luck alone.
constexpr ContextId context_id_base = 0xC0DA'0000'0000'0000;
constexpr ContextId first_created_id = context_id_base + 0x10000;

/** A device's primary context has the same name each time it comes to life, as on NVIDIA's driver. */
ContextId primary_id(CUdevice device) { return context_id_base + 1 + static_cast<ContextId>(device); }

CUcontext to_pointer(ContextId id) { return reinterpret_cast<CUcontext>(id); }
ContextId to_id(CUcontext context) { return reinterpret_cast<ContextId>(context); }

/** This thread's contexts, top last. Needs no destructor, so it can be used until the process is gone. */
class ContextStack {
 public:
  bool empty() const { return depth_ == 0; }
  ContextId top() const { return empty() ? 0 : ids_[depth_ - 1]; }
  void replace_top(ContextId id) { ids_[depth_ - 1] = id; }
  void pop() { --depth_; }

  CUresult push(ContextId id) {
    if (depth_ == ids_.size()) {
      return refuse(CUDA_ERROR_OUT_OF_MEMORY, "%zu contexts are pushed on this thread; pop some", depth_);
    }
    ids_[depth_++] = id;
    return CUDA_SUCCESS;
  }

 private:
  std::array<ContextId, 256> ids_{};
  size_t depth_ = 0;
};

thread_local constinit ContextStack stack;

/** Takes everything that lives in a context with it. */
void erase_context(DriverState& state, ContextId id, Garbage& garbage) {
  for (auto range = state.ranges.begin(); range != state.ranges.end();) {
    const auto next = std::next(range);
    if (range->second.context == id) erase_range(state, range, garbage);
    range = next;
  }
  std::erase_if(state.streams, [&](const auto& stream) { return stream.second == id; });
  state.contexts.erase(id);
}

}  // namespace

ContextId current_context() { return stack.top(); }

CUresult require_device(DriverState& state, CUdevice device) {
  if (device >= 0 && static_cast<size_t>(device) < state.devices.size()) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_DEVICE, "there are %zu devices, counted from 0", state.devices.size());
}

CUresult require_context(DriverState& state, ContextId& id, Context*& context) {
  id = current_context();
  if (id == 0) return refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread");
  const auto found = state.contexts.find(id);
  if (found == state.contexts.end()) {
    return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context current on this thread has been destroyed");
  }
  context = &found->second;
  return CUDA_SUCCESS;
}

CUresult require_context() {
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  return require_context(state(), id, context);
}

CUresult retain_primary(CUcontext* context, CUdevice device) {
  if (context == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the context output is null");
  const std::lock_guard lock(state().mutex);
  if (const CUresult refusal = require_device(state(), device)) return refusal;
  Device& entry = state().devices[static_cast<size_t>(device)];
  ++entry.primary_retains;
  state().contexts.try_emplace(primary_id(device), Context{device, entry.primary_flags, true});
  *context = to_pointer(primary_id(device));
  return CUDA_SUCCESS;
}

CUresult release_primary(CUdevice device) {
  Garbage garbage;
  const std::lock_guard lock(state().mutex);
  if (const CUresult refusal = require_device(state(), device)) return refusal;
  Device& entry = state().devices[static_cast<size_t>(device)];
  if (entry.primary_retains == 0) {
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
  }
  if (--entry.primary_retains == 0) erase_context(state(), primary_id(device), garbage);
  return CUDA_SUCCESS;
}

CUresult reset_primary(CUdevice device) {
  Garbage garbage;
  const std::lock_guard lock(state().mutex);
  if (const CUresult refusal = require_device(state(), device)) return refusal;
  erase_context(state(), primary_id(device), garbage);
  return CUDA_SUCCESS;
}

CUresult set_primary_flags(CUdevice device, unsigned flags) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult refusal = require_device(state(), device)) return refusal;
  state().devices[static_cast<size_t>(device)].primary_flags = flags;
  const auto active = state().contexts.find(primary_id(device));
  if (active != state().contexts.end()) active->second.flags = flags;
  return CUDA_SUCCESS;
}

CUresult primary_state(CUdevice device, unsigned* flags, int* active) {
  if (flags == nullptr || active == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "an output is null");
  const std::lock_guard lock(state().mutex);
  if (const CUresult refusal = require_device(state(), device)) return refusal;
  *flags = state().devices[static_cast<size_t>(device)].primary_flags;
  *active = state().contexts.contains(primary_id(device)) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult create_context(CUcontext* context, unsigned flags, CUdevice device) {
  if (context == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the context output is null");
  const std::lock_guard lock(state().mutex);
  if (const CUresult refusal = require_device(state(), device)) return refusal;
  const ContextId id = first_created_id + ++state().last_id;
  if (const CUresult refusal = stack.push(id)) return refusal;
  state().contexts.emplace(id, Context{device, flags, false});
  *context = to_pointer(id);
  return CUDA_SUCCESS;
}

CUresult destroy_context(CUcontext context) {
  Garbage garbage;
  const std::lock_guard lock(state().mutex);
  const auto found = state().contexts.find(to_id(context));
  if (found == state().contexts.end()) return refuse(CUDA_ERROR_INVALID_CONTEXT, "there is no such context");
  if (found->second.primary) {
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "a primary context is released, not destroyed");
  }
  erase_context(state(), to_id(context), garbage);
  if (current_context() == to_id(context)) stack.pop();
  return CUDA_SUCCESS;
}

CUresult push_current(CUcontext context) {
  const std::lock_guard lock(state().mutex);
  if (!state().contexts.contains(to_id(context))) {
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "there is no such context");
  }
  return stack.push(to_id(context));
}

CUresult pop_current(CUcontext* context) {
  if (stack.empty()) return refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread");
  if (context != nullptr) *context = to_pointer(stack.top());
  stack.pop();
  return CUDA_SUCCESS;
}

CUresult get_current(CUcontext* context) {
  if (context == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the context output is null");
  *context = to_pointer(current_context());
  return CUDA_SUCCESS;
}

CUresult set_current(CUcontext context) {
  const std::lock_guard lock(state().mutex);
  if (context == nullptr) {
    if (!stack.empty()) stack.pop();
    return CUDA_SUCCESS;
  }
  if (!state().contexts.contains(to_id(context))) {
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "there is no such context");
  }
  if (stack.empty()) return stack.push(to_id(context));
  stack.replace_top(to_id(context));
  return CUDA_SUCCESS;
}

CUresult get_device(CUdevice* device) {
  if (device == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the device output is null");
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult get_flags(unsigned* flags) {
  if (flags == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the flags output is null");
  const std::lock_guard lock(state().mutex);
  ContextId id = 0;
  Context* context = nullptr;
  if (const CUresult refusal = require_context(state(), id, context)) return refusal;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult api_version(CUcontext context, unsigned* version) {
  if (version == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, "the version output is null");
  const std::lock_guard lock(state().mutex);
  const ContextId id = context == nullptr ? current_context() : to_id(context);
  if (!state().contexts.contains(id)) return refuse(CUDA_ERROR_INVALID_CONTEXT, "there is no such context");
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult synchronize() { return require_context(); }

}  // namespace cudashm::emulated
