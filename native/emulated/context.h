#pragma once

#include "driver_api.h"
#include "driver_state.h"

namespace cudashm::emulated {

CUresult retain_primary(CUcontext* context, CUdevice device);
CUresult release_primary(CUdevice device);
CUresult reset_primary(CUdevice device);
CUresult set_primary_flags(CUdevice device, unsigned flags);
CUresult primary_state(CUdevice device, unsigned* flags, int* active);
CUresult create_context(CUcontext* context, unsigned flags, CUdevice device);
CUresult destroy_context(CUcontext context);
CUresult push_current(CUcontext context);
CUresult pop_current(CUcontext* context);
CUresult get_current(CUcontext* context);
CUresult set_current(CUcontext context);
CUresult get_device(CUdevice* device);
CUresult get_flags(unsigned* flags);
CUresult api_version(CUcontext context, unsigned* version);
CUresult synchronize();

/** The context on top of this thread's stack; 0 where there is none. */
ContextId current_context();

/** The thread's current context, or the refusal: none (201) or destroyed meanwhile (709). The lock is held. */
CUresult require_context(DriverState& state, ContextId& id, Context*& context);

/** The same where only the fact matters. The lock is not held. */
CUresult require_context();

/** 101 unless there is a device of this ordinal. The lock is held. */
CUresult require_device(DriverState& state, CUdevice device);

}  // namespace cudashm::emulated
