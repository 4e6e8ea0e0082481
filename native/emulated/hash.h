#pragma once

#include <cstddef>
#include <cstdint>

namespace cudashm::emulated {

/** 64-bit FNV-1a with a final mix: tells accidents apart, proves nothing against an attacker. */
inline uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (size_t index = 0; index < size; ++index) hash = (hash ^ bytes[index]) * 0x100000001b3ULL;
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

}  // namespace cudashm::emulated
