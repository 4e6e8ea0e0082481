#pragma once
// The driver as any C program reaches it: dlopen and dlsym, nothing linked.

#include "../../emulated/driver_api.h"
#include "../../emulated/function_table.h"
#include "../../emulated/observation.h"

struct DriverLibrary {
  void* library = nullptr;
#define X(name, asked, version) decltype(&::name) name = nullptr;
  CUDASHM_EMULATED_FUNCTIONS(X)
#undef X
  decltype(&::cudashm_emulated_counter) cudashm_emulated_counter = nullptr;
  decltype(&::cudashm_emulated_gauge) cudashm_emulated_gauge = nullptr;
  decltype(&::cudashm_emulated_reason) cudashm_emulated_reason = nullptr;
};

/** The library that CUDASHM_TEST_LIBRARY names, loaded on first use. A hidden function is null. */
const DriverLibrary& cu();

/** cuInit, and the primary context of the device retained and current on this thread. */
CUcontext use_device(CUdevice device = 0);

CUdeviceptr allocate(size_t bytes);

uint64_t gauge(const char* name);
uint64_t call_count(const char* function);
uint64_t success_count(const char* function);
