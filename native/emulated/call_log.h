#pragma once

#include <chrono>

#include "driver_api.h"
#include "function_table.h"

namespace cudashm::emulated {

/** Opens the file that CUDASHM_EMULATED_LOG names, if it names one. An errno value where that fails. */
int open_call_log();

/** Appends one line, whole even when several processes share the file. Nothing without a log. */
void log_call(Function function, CUresult result, std::chrono::steady_clock::duration duration, const char* reason);

bool call_log_is_open();

}  // namespace cudashm::emulated
