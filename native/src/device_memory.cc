#include "device_memory.h"

#include <algorithm>
#include <utility>

#include "crc32c.h"
#include "process_end.h"

namespace cudashm {

namespace {

using std::chrono::milliseconds;

// A checksum's bytes go through the processor's cache in portions of this size.
constexpr std::size_t kChecksumPortion = 256 * 1024;

// The driver's call that takes back what `origin` gave.
std::function<Outcome()> EndOf(const DriverApi& api, DeviceMemory::Origin origin, CUdeviceptr pointer) {
  return [&api, origin, pointer]() -> Outcome {
    if (origin == DeviceMemory::Origin::imported) {
      return {api.ipc_close_mem_handle(pointer), "cuIpcCloseMemHandle"};
    }
    return {api.mem_free(pointer), "cuMemFree"};
  };
}

// `pointer` stays 0 until the driver gave memory, which it may have done whatever the outcome is.
using Acquire = std::function<Outcome(CUdeviceptr& pointer, std::size_t& byte_size)>;

// Posts `acquire` with the context entered; the memory keeps the context's user until its end.
void Make(Device& device, const char* what, milliseconds linger, DeviceMemory::Origin origin,
          Acquire acquire, DeviceMemory::OnMemory done) {
  const bool posted = device.queue.Post(what, CallQueue::Room::limited, [=, &device] {
    Outcome outcome = device.context.Enter(device.id);
    if (!outcome.ok()) return done(Refused(device.api, outcome));
    CUdeviceptr pointer = 0;
    std::size_t byte_size = 0;
    outcome = device.context.With([&] { return acquire(pointer, byte_size); });
    if (!outcome.ok()) {
      Failure failure = Refused(device.api, outcome);
      // Before the answer: whoever opens the same handle next must not meet this one's close.
      if (pointer != 0) device.context.EndForGood(EndOf(device.api, origin, pointer));
      device.context.Leave(linger);
      return done(std::move(failure));
    }
    done(std::make_shared<DeviceMemory>(device, linger, origin, pointer, byte_size));
  });
  if (!posted) done(Failure{Failure::Kind::full});
}

}  // namespace

void DeviceMemory::Open(Device& device, milliseconds linger, const CUipcMemHandle& handle, OnMemory done) {
  const DriverApi& api = device.api;
  auto acquire = [&api, handle](CUdeviceptr& pointer, std::size_t& byte_size) -> Outcome {
    CUdeviceptr imported = 0;
    const CUresult opened = api.ipc_open_mem_handle(&imported, handle, kIpcLazyEnablePeerAccess);
    if (opened != kCudaSuccess) return {opened, "cuIpcOpenMemHandle"};
    pointer = imported;
    CUdeviceptr base = 0;
    return {api.mem_get_address_range(&base, &byte_size, imported), "cuMemGetAddressRange"};
  };
  Make(device, "open", linger, Origin::imported, std::move(acquire), std::move(done));
}

void DeviceMemory::Allocate(Device& device, milliseconds linger, std::size_t byte_size, OnMemory done) {
  const DriverApi& api = device.api;
  auto acquire = [&api, byte_size](CUdeviceptr& pointer, std::size_t& allocated) -> Outcome {
    CUdeviceptr memory = 0;
    const CUresult code = api.mem_alloc(&memory, byte_size);
    if (code != kCudaSuccess) return {code, "cuMemAlloc"};
    pointer = memory;
    allocated = byte_size;
    return {};
  };
  Make(device, "allocate", linger, Origin::allocated, std::move(acquire), std::move(done));
}

DeviceMemory::DeviceMemory(Device& device, milliseconds linger, Origin origin, CUdeviceptr pointer,
                           std::size_t byte_size)
    : device_(device), linger_(linger), origin_(origin), pointer_(pointer), byte_size_(byte_size) {}

DeviceMemory::~DeviceMemory() {
  if (state_ == State::closed || ProcessIsEnding()) return;
  device_.queue.Post("close", CallQueue::Room::always,
                     [&device = device_, linger = linger_, origin = origin_, pointer = pointer_] {
                       // Nobody is left to try again, so the context must not wait for this memory.
                       device.context.EndForGood(EndOf(device.api, origin, pointer));
                       device.context.Leave(linger);
                     });
}

void DeviceMemory::Read(std::uint64_t offset, std::size_t byte_size, OnBytes done) {
  RequireRange(offset, byte_size);
  auto into = std::make_shared<Bytes>();
  Use(
      "read",
      [this, offset, byte_size, into]() -> Outcome {
        into->resize(byte_size);
        if (byte_size == 0) return {};
        return {device_.api.memcpy_device_to_host(into->data(), pointer_ + offset, byte_size), "cuMemcpyDtoH"};
      },
      [into, done](std::optional<Failure> failure) {
        if (failure.has_value()) return done(std::move(*failure));
        done(std::move(*into));
      });
}

void DeviceMemory::Write(std::uint64_t offset, Bytes from, Done done) {
  RequireRange(offset, from.size());
  auto bytes = std::make_shared<const Bytes>(std::move(from));
  Use(
      "write",
      [this, offset, bytes]() -> Outcome {
        if (bytes->empty()) return {};
        const CUresult copied =
            device_.api.memcpy_host_to_device(pointer_ + offset, bytes->data(), bytes->size());
        if (copied != kCudaSuccess) return {copied, "cuMemcpyHtoD"};
        // A copy from pageable memory may answer while the last bytes are still on their way.
        return {device_.api.stream_synchronize(nullptr), "cuStreamSynchronize"};
      },
      std::move(done));
}

void DeviceMemory::Checksum(std::uint64_t offset, std::size_t byte_size, std::uint32_t seed, OnChecksum done) {
  RequireRange(offset, byte_size);
  auto checksum = std::make_shared<std::uint32_t>(seed);
  Use(
      "checksum",
      [this, offset, byte_size, checksum]() -> Outcome {
        Bytes portion(std::min(byte_size, kChecksumPortion));
        for (std::size_t at = 0; at < byte_size; at += portion.size()) {
          const std::size_t size = std::min(byte_size - at, portion.size());
          const CUdeviceptr from = pointer_ + offset + at;
          const CUresult copied = device_.api.memcpy_device_to_host(portion.data(), from, size);
          if (copied != kCudaSuccess) return {copied, "cuMemcpyDtoH"};
          *checksum = Crc32c(*checksum, portion.data(), size);
        }
        return {};
      },
      [checksum, done](std::optional<Failure> failure) {
        if (failure.has_value()) return done(std::move(*failure));
        done(*checksum);
      });
}

void DeviceMemory::ExportHandle(OnBytes done) {
  auto handle = std::make_shared<CUipcMemHandle>();
  Use(
      "export",
      [this, handle]() -> Outcome {
        return {device_.api.ipc_get_mem_handle(handle.get(), pointer_), "cuIpcGetMemHandle"};
      },
      [handle, done](std::optional<Failure> failure) {
        if (failure.has_value()) return done(std::move(*failure));
        done(Bytes(handle->reserved, handle->reserved + sizeof handle->reserved));
      });
}

void DeviceMemory::Close(Done done) {
  bool idle = false;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::closed) {
      closers_.push_back(std::exchange(done, nullptr));
      idle = state_ != State::closing && uses_ == 0;
      state_ = State::closing;
    }
  }
  if (done != nullptr) return done(std::nullopt);
  if (idle) PostEnd();
}

void DeviceMemory::RequireRange(std::uint64_t offset, std::size_t byte_size) const {
  if (offset <= byte_size_ && byte_size <= byte_size_ - offset) return;
  throw NativeError(NativeError::Code::argument, "the copy reaches beyond the end of the memory");
}

void DeviceMemory::Use(const char* what, std::function<Outcome()> calls, Done done) {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::open) {
      ++uses_;
    } else {
      calls = nullptr;
    }
  }
  if (calls == nullptr) return done(Failure{Failure::Kind::closed});
  const bool posted =
      device_.queue.Post(what, CallQueue::Room::limited, [self = shared_from_this(), calls, done] {
        const Outcome outcome = self->device_.context.With(calls);
        std::optional<Failure> failure;
        if (!outcome.ok()) failure = Refused(self->device_.api, outcome);
        self->Unuse();
        done(std::move(failure));
      });
  if (posted) return;
  Unuse();
  done(Failure{Failure::Kind::full});
}

void DeviceMemory::Unuse() {
  bool end = false;
  {
    std::lock_guard lock(mutex_);
    end = --uses_ == 0 && state_ == State::closing;
  }
  if (end) PostEnd();
}

void DeviceMemory::PostEnd() {
  device_.queue.Post("close", CallQueue::Room::always, [self = shared_from_this()] { self->End(); });
}

void DeviceMemory::End() {
  const Outcome outcome = device_.context.With(EndOf(device_.api, origin_, pointer_));
  if (outcome.ok()) device_.context.Leave(linger_);
  std::optional<Failure> failure;
  if (!outcome.ok()) failure = Refused(device_.api, outcome);
  std::vector<Done> closers;
  {
    std::lock_guard lock(mutex_);
    state_ = outcome.ok() ? State::closed : State::close_failed;
    closers.swap(closers_);
  }
  for (const Done& done : closers) done(failure);
}

}  // namespace cudashm
