#pragma once

#include <string>

#include "call_queue.h"
#include "device_context.h"
#include "driver_api.h"

namespace cudashm {

// One GPU: its own lanes and its own context, so that no device waits for another.
class Device {
 public:
  static constexpr std::size_t kMaxLanes = 8;
  static constexpr std::size_t kMaxWaiting = 1024;

  Device(const DriverApi& driver_api, int device_ordinal, CUdevice device_id)
      : api(driver_api),
        ordinal(device_ordinal),
        id(device_id),
        queue("cudashm-gpu" + std::to_string(device_ordinal), kMaxLanes, kMaxWaiting),
        context(driver_api, queue) {}

  const DriverApi& api;
  const int ordinal;
  const CUdevice id;
  CallQueue queue;
  DeviceContext context;
};

}  // namespace cudashm
