#include "memory_wrap.h"

#include <cstring>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "to_js.h"

namespace cudashm {

namespace {

// Settles with null, or with the failure.
DeviceMemory::Done SettleWithNull(Completions::Ticket ticket) {
  return [ticket = std::move(ticket)](std::optional<Failure> failure) {
    ticket.Settle([failure = std::move(failure)](Napi::Env env, Napi::Value) -> Napi::Value {
      return failure.has_value() ? ToJs(env, *failure) : env.Null();
    });
  };
}

// A range beyond the end is a fault of our TypeScript, which checks first.
template <class Call>
void OrThrowRangeError(Napi::Env env, Call call) {
  try {
    call();
  } catch (const NativeError& error) {
    throw Napi::RangeError::New(env, error.what());
  }
}

}  // namespace

Napi::Function MemoryWrap::Define(Napi::Env env) {
  return DefineClass(env, "DeviceMemory",
                     {InstanceAccessor<&MemoryWrap::DeviceId>("deviceId"),
                      InstanceAccessor<&MemoryWrap::DevicePointer>("devicePointer"),
                      InstanceAccessor<&MemoryWrap::ByteSize>("byteSize"),
                      InstanceMethod<&MemoryWrap::Read>("read"), InstanceMethod<&MemoryWrap::Write>("write"),
                      InstanceMethod<&MemoryWrap::Checksum>("checksum"),
                      InstanceMethod<&MemoryWrap::ExportHandle>("exportHandle"),
                      InstanceMethod<&MemoryWrap::Close>("close")});
}

Napi::Value MemoryWrap::New(Napi::Env env, DeviceMemory::Ptr memory) {
  Environment& environment = Environment::Of(env);
  environment.new_memory = std::move(memory);
  try {
    return environment.memory_class.New({});
  } catch (...) {
    // Nobody's constructor took it, and no later one may.
    environment.new_memory = nullptr;
    throw;
  }
}

MemoryWrap::MemoryWrap(const Napi::CallbackInfo& info)
    : ObjectWrap(info), memory_(std::exchange(Environment::Of(info.Env()).new_memory, nullptr)) {
  if (memory_ == nullptr) throw Napi::TypeError::New(info.Env(), "device memory comes from a driver only");
}

Napi::Value MemoryWrap::DeviceId(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), memory_->device_ordinal());
}

Napi::Value MemoryWrap::DevicePointer(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), std::uint64_t{memory_->pointer()});
}

Napi::Value MemoryWrap::ByteSize(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), std::uint64_t{memory_->byte_size()});
}

// The lane copies into memory of its own and the loop's thread from there into the caller's buffer, because
// JavaScript can detach or shrink a buffer at any time while the lane runs. Callers keep the pieces small.
Napi::Value MemoryWrap::Read(const Napi::CallbackInfo& info) {
  const std::uint64_t offset = Uint64Argument(info, 0);
  const ByteView into = BytesArgument(info, 1);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env(), info[1]);
  auto fill = [](Napi::Env env, Napi::Value kept, const DeviceMemory::Bytes& bytes) -> Napi::Value {
    const ByteView target = BytesOf(kept);
    if (target.size < bytes.size()) {
      throw Napi::TypeError::New(env, "the buffer was detached or shrunk while the copy ran");
    }
    if (!bytes.empty()) std::memcpy(target.data, bytes.data(), bytes.size());
    return env.Null();
  };
  OrThrowRangeError(info.Env(), [&, ticket = ticket] {
    memory_->Read(offset, into.size, SettleWith<DeviceMemory::Bytes>(ticket, fill));
  });
  return promise;
}

Napi::Value MemoryWrap::Write(const Napi::CallbackInfo& info) {
  const std::uint64_t offset = Uint64Argument(info, 0);
  const ByteView from = BytesArgument(info, 1);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  OrThrowRangeError(info.Env(), [&, ticket = ticket] {
    memory_->Write(offset, DeviceMemory::Bytes(from.data, from.data + from.size), SettleWithNull(ticket));
  });
  return promise;
}

Napi::Value MemoryWrap::Checksum(const Napi::CallbackInfo& info) {
  const std::uint64_t offset = Uint64Argument(info, 0);
  const std::uint64_t byte_size = Uint64Argument(info, 1);
  const std::uint32_t seed = Uint32Argument(info, 2);
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  auto convert = [](Napi::Env env, Napi::Value, std::uint32_t checksum) -> Napi::Value {
    return Napi::Number::New(env, checksum);
  };
  OrThrowRangeError(info.Env(), [&, ticket = ticket] {
    memory_->Checksum(offset, byte_size, seed, SettleWith<std::uint32_t>(ticket, convert));
  });
  return promise;
}

Napi::Value MemoryWrap::ExportHandle(const Napi::CallbackInfo& info) {
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  auto copy = [](Napi::Env env, Napi::Value, const DeviceMemory::Bytes& bytes) -> Napi::Value {
    Napi::Uint8Array handle = Napi::Uint8Array::New(env, bytes.size());
    std::memcpy(handle.Data(), bytes.data(), bytes.size());
    return handle;
  };
  memory_->ExportHandle(SettleWith<DeviceMemory::Bytes>(ticket, copy));
  return promise;
}

Napi::Value MemoryWrap::Close(const Napi::CallbackInfo& info) {
  auto [promise, ticket] = Environment::Of(info.Env()).completions.Begin(info.Env());
  memory_->Close(SettleWithNull(ticket));
  return promise;
}

}  // namespace cudashm
