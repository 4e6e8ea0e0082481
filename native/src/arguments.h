#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>

namespace cudashm {

// The arguments of a call as C++ values. Each throws a TypeError that names what was expected: a wrong
// argument here is a fault of our own TypeScript, never of a client.

struct ByteView {
  std::uint8_t* data;
  std::size_t size;
};

std::int32_t IntegerArgument(const Napi::CallbackInfo& info, std::size_t index);
std::uint32_t Uint32Argument(const Napi::CallbackInfo& info, std::size_t index);
std::uint64_t Uint64Argument(const Napi::CallbackInfo& info, std::size_t index);
// Over shared memory too. Detached or out of bounds, it has size 0.
ByteView BytesArgument(const Napi::CallbackInfo& info, std::size_t index);
ByteView BytesOf(Napi::Value value);

}  // namespace cudashm
