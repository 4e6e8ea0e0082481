#include "crc32c.h"

#include <array>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace cudashm {

namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// Castagnoli's polynomial with its bits in reverse, as they come off the wire.
constexpr std::uint32_t kPolynomial = 0x82f63b78;

// [0] takes a byte into the checksum, [n] a byte with n zero bytes after it: so eight go at once.
constexpr Tables MakeTables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t n = 1; n < tables.size(); ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

std::uint32_t Crc32cByTable(std::uint32_t seed, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  std::uint32_t crc = ~seed;
  for (; size >= 8; size -= 8, at += 8) {
    crc ^= std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
           std::uint32_t{at[3]} << 24;
    crc = kTables[7][crc & 0xff] ^ kTables[6][(crc >> 8) & 0xff] ^ kTables[5][(crc >> 16) & 0xff] ^
          kTables[4][crc >> 24] ^ kTables[3][at[4]] ^ kTables[2][at[5]] ^ kTables[1][at[6]] ^ kTables[0][at[7]];
  }
  for (; size > 0; --size, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

bool HasCrc32cInstruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

__attribute__((target("sse4.2"))) std::uint32_t Crc32cByInstruction(std::uint32_t seed, const void* bytes,
                                                                    std::size_t size) {
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t crc = static_cast<std::uint32_t>(~seed);
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto last = static_cast<std::uint32_t>(crc);
  for (; size > 0; --size, ++at) last = _mm_crc32_u8(last, *at);
  return ~last;
}

#else

bool HasCrc32cInstruction() {
  return false;
}

std::uint32_t Crc32cByInstruction(std::uint32_t, const void*, std::size_t) {
  std::abort();
}

#endif

std::uint32_t Crc32c(std::uint32_t seed, const void* bytes, std::size_t size) {
  return HasCrc32cInstruction() ? Crc32cByInstruction(seed, bytes, size) : Crc32cByTable(seed, bytes, size);
}

}  // namespace cudashm
