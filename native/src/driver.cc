#include "driver.h"

#include <cstdio>
#include <unordered_map>
#include <utility>

namespace cudashm {

namespace {

constexpr std::size_t kControlLanes = 2;

// NVIDIA's tools print a UUID so; a MIG instance is told by its name, which no attribute does.
std::string FormatUuid(const CUuuid& uuid, const std::string& name) {
  std::string text = name.find(" MIG ") == std::string::npos ? "GPU" : "MIG";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", uuid.bytes[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

}  // namespace

Driver& Driver::Load(const std::string& path) {
  // Keyed by the loaded library, not by its path: two names of one file are one driver.
  static auto& mutex = *new std::mutex;
  static auto& drivers = *new std::unordered_map<void*, Driver*>;
  auto library = std::make_unique<SharedLibrary>(path);
  std::lock_guard lock(mutex);
  Driver*& driver = drivers[library->Identity()];
  if (driver == nullptr) driver = new Driver(std::move(library));
  return *driver;
}

Driver::Driver(std::unique_ptr<SharedLibrary> library)
    : library_(std::move(library)),
      api_(DriverApi::Resolve(*library_)),
      emulated_(DriverApi::IsEmulated(*library_)),
      library_path_(library_->Location()),
      control_("cudashm-driver", kControlLanes, Device::kMaxWaiting) {
  library_->Keep();
  if (api_.driver_get_version(&version_) != kCudaSuccess) version_ = 0;
}

void Driver::Initialise(std::function<void(Result<int>)> done) {
  const bool posted = control_.Post("initialise", CallQueue::Room::limited, [this, done] {
    const Outcome outcome = InitialiseNow();
    if (!outcome.ok()) return done(Refused(api_, outcome));
    done(device_count_.load());
  });
  if (!posted) done(Failure{Failure::Kind::full});
}

Outcome Driver::InitialiseNow() {
  std::lock_guard lock(initialising_);
  if (device_count_ > 0) return {};
  const CUresult initialised = api_.init(0);
  if (initialised != kCudaSuccess) return {initialised, "cuInit"};
  int count = 0;
  const CUresult counted = api_.device_get_count(&count);
  if (counted != kCudaSuccess) return {counted, "cuDeviceGetCount"};
  std::vector<std::unique_ptr<Device>> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    const CUresult got = api_.device_get(&device, ordinal);
    if (got != kCudaSuccess) return {got, "cuDeviceGet"};
    devices.push_back(std::make_unique<Device>(api_, ordinal, device));
  }
  devices_ = std::move(devices);
  // Published last: whoever sees the count sees the devices.
  device_count_.store(count);
  return {};
}

void Driver::ListDevices(std::function<void(Result<std::vector<DeviceInfo>>)> done) {
  const bool posted = control_.Post("list devices", CallQueue::Room::limited, [this, done] {
    std::vector<DeviceInfo> infos;
    const int count = device_count_.load();
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      DeviceInfo info{};
      const Outcome outcome = Describe(*devices_[static_cast<std::size_t>(ordinal)], info);
      if (!outcome.ok()) return done(Refused(api_, outcome));
      infos.push_back(std::move(info));
    }
    done(std::move(infos));
  });
  if (!posted) done(Failure{Failure::Kind::full});
}

Outcome Driver::Describe(Device& device, DeviceInfo& info) const {
  info.ordinal = device.ordinal;
  char name[256] = "";
  if (CUresult code = api_.device_get_name(name, sizeof name - 1, device.id)) return {code, "cuDeviceGetName"};
  info.name = name;
  CUuuid uuid{};
  if (CUresult code = api_.device_get_uuid(&uuid, device.id)) return {code, "cuDeviceGetUuid"};
  info.uuid = FormatUuid(uuid, info.name);
  char bus_id[32] = "";
  if (CUresult code = api_.device_get_pci_bus_id(bus_id, sizeof bus_id - 1, device.id)) {
    return {code, "cuDeviceGetPCIBusId"};
  }
  info.pci_bus_id = bus_id;
  return {api_.device_total_mem(&info.total_bytes, device.id), "cuDeviceTotalMem"};
}

void Driver::QueryAttribute(const Device& device, int attribute, std::function<void(Result<int>)> done) {
  const bool posted = control_.Post("attribute", CallQueue::Room::limited, [this, &device, attribute, done] {
    int value = 0;
    const CUresult code = api_.device_get_attribute(&value, attribute, device.id);
    if (code != kCudaSuccess) return done(Refused(api_, {code, "cuDeviceGetAttribute"}));
    done(value);
  });
  if (!posted) done(Failure{Failure::Kind::full});
}

void Driver::QueryMemory(Device& device, std::chrono::milliseconds linger,
                         std::function<void(Result<MemoryInfo>)> done) {
  const bool posted = device.queue.Post("memory info", CallQueue::Room::limited, [this, &device, linger, done] {
    Outcome outcome = device.context.Enter(device.id);
    if (!outcome.ok()) return done(Refused(api_, outcome));
    MemoryInfo info{};
    outcome = device.context.With([&]() -> Outcome {
      return {api_.mem_get_info(&info.free_bytes, &info.total_bytes), "cuMemGetInfo"};
    });
    Result<MemoryInfo> result = info;
    if (!outcome.ok()) result = Refused(api_, outcome);
    device.context.Leave(linger);
    done(std::move(result));
  });
  if (!posted) done(Failure{Failure::Kind::full});
}

void Driver::QueryFree(Device& device, std::function<void(Result<std::optional<std::size_t>>)> done) {
  const bool posted = device.queue.Post("free memory", CallQueue::Room::limited, [this, &device, done] {
    if (!device.context.Visit()) return done(std::nullopt);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    const Outcome outcome = device.context.With([&]() -> Outcome {
      return {api_.mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo"};
    });
    Result<std::optional<std::size_t>> result = std::optional(free_bytes);
    if (!outcome.ok()) result = Refused(api_, outcome);
    device.context.EndVisit();
    done(std::move(result));
  });
  if (!posted) done(Failure{Failure::Kind::full});
}

Device* Driver::FindDevice(int ordinal) {
  if (ordinal < 0 || ordinal >= device_count_.load()) return nullptr;
  return devices_[static_cast<std::size_t>(ordinal)].get();
}

std::vector<StuckCall> Driver::RunningCalls() {
  std::vector<StuckCall> calls;
  for (const CallQueue::Running& call : control_.RunningCalls()) calls.push_back({-1, call});
  const int count = device_count_.load();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    for (const CallQueue::Running& call : FindDevice(ordinal)->queue.RunningCalls()) {
      calls.push_back({ordinal, call});
    }
  }
  return calls;
}

}  // namespace cudashm
