#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "call_queue.h"
#include "device.h"
#include "driver_api.h"
#include "error.h"
#include "shared_library.h"

namespace cudashm {

struct DeviceInfo {
  int ordinal;
  std::string uuid;
  std::string pci_bus_id;
  std::string name;
  std::size_t total_bytes;
};

struct MemoryInfo {
  std::size_t free_bytes;
  std::size_t total_bytes;
};

struct StuckCall {
  int ordinal;  // -1 for a call that concerns no device
  CallQueue::Running call;
};

// A loaded driver library. One a library and process, shared by every thread and never destroyed: its lanes
// run until the process ends.
class Driver {
 public:
  // Finds or loads the library at `path`. Throws NativeError. Blocks for as long as the loader does.
  static Driver& Load(const std::string& path);

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  bool emulated() const { return emulated_; }
  const std::string& library_path() const { return library_path_; }
  // As cuDriverGetVersion says it: 1000 * major + 10 * minor, or 0 where it would not say.
  int version() const { return version_; }

  // Initialises the driver unless that was done before. Makes no context. The number of devices.
  void Initialise(std::function<void(Result<int>)> done);
  // The devices, without a context.
  void ListDevices(std::function<void(Result<std::vector<DeviceInfo>>)> done);
  // The CUdevice_attribute of this number, without a context.
  void QueryAttribute(const Device& device, int attribute, std::function<void(Result<int>)> done);
  // Free and total memory of a device; needs a context.
  void QueryMemory(Device& device, std::chrono::milliseconds linger,
                   std::function<void(Result<MemoryInfo>)> done);
  // Free memory of a device in bytes; nothing where there is no context, and none is made.
  void QueryFree(Device& device, std::function<void(Result<std::optional<std::size_t>>)> done);

  // Null where there is no such device, or before the driver was initialised.
  Device* FindDevice(int ordinal);

  // Every call that is on a lane now.
  std::vector<StuckCall> RunningCalls();

 private:
  explicit Driver(std::unique_ptr<SharedLibrary> library);

  Outcome InitialiseNow();
  Outcome Describe(Device& device, DeviceInfo& info) const;

  const std::unique_ptr<SharedLibrary> library_;
  const DriverApi api_;
  const bool emulated_;
  const std::string library_path_;
  int version_ = 0;
  // Not a device's: a list of devices waits for no device.
  CallQueue control_;

  std::mutex initialising_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::atomic<int> device_count_ = 0;
};

}  // namespace cudashm
