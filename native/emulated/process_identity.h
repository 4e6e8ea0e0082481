#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace cudashm::emulated {

/**
 * When a process started, in clock ticks since boot, from an open /proc/<pid> directory. With the pid it names a
 * process for as long as the machine is up, whatever happens to the number. None, with errno, where it cannot be read.
 */
std::optional<uint64_t> start_time(int proc_directory);

/** The same of this process. */
std::optional<uint64_t> own_start_time();

}  // namespace cudashm::emulated
