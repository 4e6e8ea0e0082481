#pragma once

#include <cstdint>
#include <optional>

#include "driver_api.h"
#include "shared_segment.h"

namespace cudashm::emulated {

/** Where an importer finds an allocation's memory, and how it knows that it found the right one. */
struct IpcLocation {
  int32_t pid;
  int32_t file;
  int32_t physical_device;
  uint64_t start_time;
  Nonce nonce;
};

/** The 64 bytes begin with the text CUDASHM-EMULATED, which no handle of NVIDIA's driver does. */
CUipcMemHandle encode_handle(const IpcLocation& location);

/** None unless every byte is as encode_handle would have written it. */
std::optional<IpcLocation> decode_handle(const CUipcMemHandle& handle);

}  // namespace cudashm::emulated
