#pragma once
// What the emulated driver offers beyond CUDA's own functions, for whoever must tell it from NVIDIA's driver or
// look at what it did.

#include "driver_api.h"

/** A symbol that only the emulated driver has: its presence says that no GPU is behind this library. */
CUDASHM_EXPORT const char cudashm_emulated_driver[];

/** Calls of a function in this process and how many succeeded. 0, or 1 when there is no function of that name. */
CUDASHM_EXPORT int cudashm_emulated_counter(const char* function, uint64_t* calls, uint64_t* successes);

/**
 * A number of things that exist now in this process: "allocations", "allocated_bytes", "imports" (mapped
 * handles), "import_opens" (their opens not yet closed), "imported_bytes", "contexts", "streams". 0, or 1 when
 * there is no gauge of that name.
 */
CUDASHM_EXPORT int cudashm_emulated_gauge(const char* name, uint64_t* value);

/** Why this thread's last call was refused, as one sentence without pointers or handles; "" when it was not. */
CUDASHM_EXPORT const char* cudashm_emulated_reason(void);
