#pragma once

#include <cstdint>

#include "function_table.h"

namespace cudashm::emulated {

/** Counts one more call and answers its number in this process, from 1. */
uint64_t count_call(Function function);

void count_success(Function function);

uint64_t calls(Function function);
uint64_t successes(Function function);

}  // namespace cudashm::emulated
