#pragma once

#include <cstddef>
#include <cstdint>

namespace cudashm {

// CRC-32C (Castagnoli), as iSCSI and ext4 use it. `seed` is the checksum of the bytes before, 0 of none, so
// that bytes in parts come to the same as at once.
std::uint32_t Crc32c(std::uint32_t seed, const void* bytes, std::size_t size);

// The two ways to compute it, for tests: the first works everywhere, the second only where it says so.
std::uint32_t Crc32cByTable(std::uint32_t seed, const void* bytes, std::size_t size);
bool HasCrc32cInstruction();
std::uint32_t Crc32cByInstruction(std::uint32_t seed, const void* bytes, std::size_t size);

}  // namespace cudashm
