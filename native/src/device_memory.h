#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "device.h"
#include "error.h"

namespace cudashm {

// Device memory this process can reach: a mapping (someone else's, imported) or an allocation of its own.
//
// Lifetime: a copy counts itself in before it waits for a lane, and the end of the memory waits for the last
// copy, so no copy ever runs on memory that is gone. Memory that nobody ended is ended in the background when
// its last holder lets go: a JavaScript object collected, or a worker thread terminated.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  enum class Origin { imported, allocated };
  using Ptr = std::shared_ptr<DeviceMemory>;
  using Bytes = std::vector<std::uint8_t>;
  using Done = std::function<void(std::optional<Failure>)>;
  using OnMemory = std::function<void(Result<Ptr>)>;
  using OnBytes = std::function<void(Result<Bytes>)>;
  using OnChecksum = std::function<void(Result<std::uint32_t>)>;

  // Imports the allocation behind `handle`; its size is what the driver reports.
  static void Open(Device& device, std::chrono::milliseconds linger, const CUipcMemHandle& handle,
                   OnMemory done);
  // Allocates `byte_size` bytes.
  static void Allocate(Device& device, std::chrono::milliseconds linger, std::size_t byte_size,
                       OnMemory done);

  DeviceMemory(Device& device, std::chrono::milliseconds linger, Origin origin, CUdeviceptr pointer,
               std::size_t byte_size);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  int device_ordinal() const { return device_.ordinal; }
  CUdeviceptr pointer() const { return pointer_; }
  std::size_t byte_size() const { return byte_size_; }

  // Copies out. Throws NativeError (argument) beyond the memory's end.
  void Read(std::uint64_t offset, std::size_t byte_size, OnBytes done);
  // Copies in, and is done when the bytes are in device memory. Throws NativeError (argument) beyond the end.
  void Write(std::uint64_t offset, Bytes from, Done done);
  // CRC-32C of the bytes, carried on from `seed`; one call on a lane, so callers keep the pieces small. Throws
  // NativeError (argument) beyond the end.
  void Checksum(std::uint64_t offset, std::size_t byte_size, std::uint32_t seed, OnChecksum done);
  // The 64 bytes by which another process imports this allocation.
  void ExportHandle(OnBytes done);
  // Ends the import or frees the allocation. After a failure it may be called again; once ended, it does
  // nothing. `done` is called once for each call.
  void Close(Done done);

 private:
  enum class State { open, closing, close_failed, closed };

  void RequireRange(std::uint64_t offset, std::size_t byte_size) const;
  // Posts `calls` with the memory held open until they ran.
  void Use(const char* what, std::function<Outcome()> calls, Done done);
  void Unuse();
  void PostEnd();
  void End();

  Device& device_;
  const std::chrono::milliseconds linger_;
  const Origin origin_;
  const CUdeviceptr pointer_;
  const std::size_t byte_size_;

  std::mutex mutex_;
  State state_ = State::open;
  std::size_t uses_ = 0;
  std::vector<Done> closers_;
};

}  // namespace cudashm
