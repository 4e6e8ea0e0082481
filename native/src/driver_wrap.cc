#include "driver_wrap.h"

#include <cstring>
#include <utility>
#include <vector>

#include "arguments.h"
#include "environment.h"
#include "memory_wrap.h"
#include "to_js.h"

namespace cudashm {

namespace {

Napi::Value DevicesToJs(Napi::Env env, Napi::Value, const std::vector<DeviceInfo>& infos) {
  Napi::Array devices = Napi::Array::New(env, infos.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    Napi::Object device = Napi::Object::New(env);
    device.Set("ordinal", infos[i].ordinal);
    device.Set("uuid", infos[i].uuid);
    device.Set("pciBusId", infos[i].pci_bus_id);
    device.Set("name", infos[i].name);
    device.Set("totalBytes", Napi::BigInt::New(env, std::uint64_t{infos[i].total_bytes}));
    devices.Set(static_cast<std::uint32_t>(i), device);
  }
  return devices;
}

Napi::Value MemoryToJs(Napi::Env env, Napi::Value, const DeviceMemory::Ptr& memory) {
  return MemoryWrap::New(env, memory);
}

CallQueue& LoaderQueue() {
  static auto& queue = *new CallQueue("cudashm-load", 2, Device::kMaxWaiting);
  return queue;
}

}  // namespace

Napi::Function DriverWrap::Define(Napi::Env env) {
  return DefineClass(
      env, "Driver",
      {InstanceAccessor<&DriverWrap::Kind>("kind"), InstanceAccessor<&DriverWrap::LibraryPath>("libraryPath"),
       InstanceAccessor<&DriverWrap::Version>("version"),
       InstanceMethod<&DriverWrap::Initialise>("initialise"), InstanceMethod<&DriverWrap::Devices>("devices"),
       InstanceMethod<&DriverWrap::Attribute>("attribute"),
       InstanceMethod<&DriverWrap::MemoryInfo>("memoryInfo"),
       InstanceMethod<&DriverWrap::FreeBytes>("freeBytes"), InstanceMethod<&DriverWrap::Open>("open"),
       InstanceMethod<&DriverWrap::Allocate>("allocate"),
       InstanceMethod<&DriverWrap::RunningCalls>("runningCalls")});
}

Napi::Value DriverWrap::Load(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsString()) throw Napi::TypeError::New(env, "argument 1 must be a string");
  const std::string path = info[0].As<Napi::String>().Utf8Value();
  const std::chrono::milliseconds linger(IntegerArgument(info, 1));
  auto [promise, ticket] = Environment::Of(env).completions.Begin(env);
  LoaderQueue().Post("load", CallQueue::Room::always, [path, linger, ticket = ticket] {
    try {
      Driver* driver = &Driver::Load(path);
      ticket.Settle([driver, linger](Napi::Env to, Napi::Value) -> Napi::Value {
        Environment& environment = Environment::Of(to);
        environment.new_driver = {driver, linger};
        return environment.driver_class.New({});
      });
    } catch (const NativeError& error) {
      ticket.Settle([error](Napi::Env to, Napi::Value) { return ToJs(to, error); });
    }
  });
  return promise;
}

DriverWrap::DriverWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const auto made = std::exchange(Environment::Of(info.Env()).new_driver, {nullptr, {}});
  if (made.driver == nullptr) throw Napi::TypeError::New(info.Env(), "a driver comes from loadDriver only");
  driver_ = made.driver;
  linger_ = made.linger;
}

Napi::Value DriverWrap::Kind(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), driver_->emulated() ? "emulated" : "cuda");
}

Napi::Value DriverWrap::LibraryPath(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), driver_->library_path());
}

Napi::Value DriverWrap::Version(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), driver_->version());
}

Napi::Value DriverWrap::Initialise(const Napi::CallbackInfo& info) {
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  driver_->Initialise(SettleWith<int>(ticket, [](Napi::Env env, Napi::Value, int count) {
    return Napi::Number::New(env, count);
  }));
  return promise;
}

Napi::Value DriverWrap::Devices(const Napi::CallbackInfo& info) {
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  driver_->ListDevices(SettleWith<std::vector<DeviceInfo>>(ticket, DevicesToJs));
  return promise;
}

Napi::Value DriverWrap::Attribute(const Napi::CallbackInfo& info) {
  const Device& device = DeviceArgument(info, 0);
  const int attribute = IntegerArgument(info, 1);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  driver_->QueryAttribute(device, attribute, SettleWith<int>(ticket, [](Napi::Env env, Napi::Value, int value) {
    return Napi::Number::New(env, value);
  }));
  return promise;
}

Napi::Value DriverWrap::MemoryInfo(const Napi::CallbackInfo& info) {
  Device& device = DeviceArgument(info, 0);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  auto convert = [](Napi::Env env, Napi::Value, const cudashm::MemoryInfo& memory) -> Napi::Value {
    Napi::Object object = Napi::Object::New(env);
    object.Set("freeBytes", Napi::BigInt::New(env, std::uint64_t{memory.free_bytes}));
    object.Set("totalBytes", Napi::BigInt::New(env, std::uint64_t{memory.total_bytes}));
    return object;
  };
  driver_->QueryMemory(device, linger_, SettleWith<cudashm::MemoryInfo>(ticket, convert));
  return promise;
}

Napi::Value DriverWrap::FreeBytes(const Napi::CallbackInfo& info) {
  Device& device = DeviceArgument(info, 0);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  using Free = std::optional<std::size_t>;
  driver_->QueryFree(device, SettleWith<Free>(ticket, [](Napi::Env env, Napi::Value, const Free& free_bytes) {
    if (!free_bytes.has_value()) return env.Null();
    return Napi::BigInt::New(env, std::uint64_t{*free_bytes}).As<Napi::Value>();
  }));
  return promise;
}

Napi::Value DriverWrap::Open(const Napi::CallbackInfo& info) {
  Device& device = DeviceArgument(info, 0);
  const ByteView bytes = BytesArgument(info, 1);
  CUipcMemHandle handle;
  if (bytes.size != sizeof handle.reserved) {
    throw Napi::TypeError::New(info.Env(), "argument 2 must have 64 bytes");
  }
  std::memcpy(handle.reserved, bytes.data, sizeof handle.reserved);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  DeviceMemory::Open(device, linger_, handle, SettleWith<DeviceMemory::Ptr>(ticket, MemoryToJs));
  return promise;
}

Napi::Value DriverWrap::Allocate(const Napi::CallbackInfo& info) {
  Device& device = DeviceArgument(info, 0);
  const std::uint64_t byte_size = Uint64Argument(info, 1);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  DeviceMemory::Allocate(device, linger_, byte_size, SettleWith<DeviceMemory::Ptr>(ticket, MemoryToJs));
  return promise;
}

Napi::Value DriverWrap::RunningCalls(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto now = CallQueue::Clock::now();
  Napi::Array calls = Napi::Array::New(env);
  std::uint32_t index = 0;
  for (const StuckCall& stuck : driver_->RunningCalls()) {
    Napi::Object call = Napi::Object::New(env);
    const bool on_device = stuck.ordinal >= 0;
    call.Set("deviceId", on_device ? Napi::Number::New(env, stuck.ordinal).As<Napi::Value>() : env.Null());
    call.Set("what", stuck.call.what);
    call.Set("runningMs", std::chrono::duration<double, std::milli>(now - stuck.call.since).count());
    calls.Set(index++, call);
  }
  return calls;
}

Device& DriverWrap::DeviceArgument(const Napi::CallbackInfo& info, std::size_t index) {
  Device* device = driver_->FindDevice(IntegerArgument(info, index));
  if (device == nullptr) {
    throw Napi::RangeError::New(info.Env(), "no such device, or the driver was not initialised yet");
  }
  return *device;
}

}  // namespace cudashm
