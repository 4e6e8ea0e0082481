#pragma once

#include "driver_api.h"
#include "ipc_handle.h"
#include "shared_segment.h"

namespace cudashm::emulated {

struct ExporterFile {
  CUresult result;
  /** Set where result is success, and then checked to be the memory that the location names. */
  UniqueFd file;
  SegmentHeader header;
};

/**
 * Reaches into the exporter for the file of one allocation. The location is untrusted: nothing is opened before
 * it is known to be a memfd of ours in a process that started when the location says, and nothing of it is used
 * before its seals, size and nonce were checked. 1 where it is not there (any more), 800 where this process may
 * not look into the exporter.
 */
ExporterFile open_exporter_file(const IpcLocation& location);

}  // namespace cudashm::emulated
