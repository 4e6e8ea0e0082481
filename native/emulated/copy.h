#pragma once

#include <cstdint>

#include "driver_api.h"

namespace cudashm::emulated {

/** What an address may be where it is not memory that the driver handed out. */
enum class Elsewhere {
  /** Nothing: it had to be device memory. */
  refused,
  /** The program's own memory: the caller vouches for it, as with memcpy. */
  host,
  /** The program's own memory if it can be read or written at all: a unified copy cannot tell a stale pointer. */
  host_if_accessible,
};

struct CopyEnd {
  uint64_t address;
  Elsewhere elsewhere;
};

/**
 * Copies before it returns, in whatever direction the two addresses say. 1 where device memory does not hold the
 * whole of an end, and nothing is copied then; bytes of host memory may have been written before it turned out
 * inaccessible.
 */
CUresult copy(CopyEnd to, CopyEnd from, size_t bytes);

CUresult fill(CUdeviceptr to, unsigned char value, size_t bytes);

}  // namespace cudashm::emulated
