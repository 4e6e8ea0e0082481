#include "../../src/crc32c.h"

#include <cstdint>
#include <random>
#include <vector>

#include "check.h"

using namespace cudashm;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Way = std::uint32_t (*)(std::uint32_t seed, const void* bytes, std::size_t size);

std::vector<Way> Ways() {
  std::vector<Way> ways{Crc32c, Crc32cByTable};
  if (HasCrc32cInstruction()) ways.push_back(Crc32cByInstruction);
  return ways;
}

// As the polynomial's definition has it, a bit at a time.
std::uint32_t ByDefinition(std::uint32_t seed, const Bytes& bytes) {
  std::uint32_t crc = ~seed;
  for (const std::uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((crc ^ (byte >> bit)) & 1) != 0;
      crc = (crc >> 1) ^ (carry ? 0x82f63b78 : 0);
    }
  }
  return ~crc;
}

Bytes RandomBytes(std::size_t size) {
  static std::minstd_rand random(1);
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 8);
  return bytes;
}

// Of RFC 3720, and the one that every list of checksums has.
void ThePublishedValuesComeOut() {
  Bytes ascending(32);
  for (std::uint8_t i = 0; i < 32; ++i) ascending[i] = i;
  for (const Way way : Ways()) {
    CHECK(way(0, "123456789", 9) == 0xe3069283);
    CHECK(way(0, Bytes(32, 0).data(), 32) == 0x8a9136aa);
    CHECK(way(0, Bytes(32, 0xff).data(), 32) == 0x62a8ab43);
    CHECK(way(0, ascending.data(), 32) == 0x46dd794e);
    CHECK(way(0, nullptr, 0) == 0);
  }
}

void EveryLengthAtEveryAlignmentIsRight() {
  const Bytes bytes = RandomBytes(80);
  for (std::size_t start = 0; start < 8; ++start) {
    for (std::size_t size = 0; start + size <= bytes.size(); ++size) {
      const Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(start),
                       bytes.begin() + static_cast<std::ptrdiff_t>(start + size));
      const std::uint32_t expected = ByDefinition(0x12345678, part);
      for (const Way way : Ways()) CHECK(way(0x12345678, bytes.data() + start, size) == expected);
    }
  }
}

void PartsComeToTheSameAsTheWhole() {
  const Bytes bytes = RandomBytes(1 << 16);
  const std::uint32_t whole = ByDefinition(0, bytes);
  for (const Way way : Ways()) {
    CHECK(way(0, bytes.data(), bytes.size()) == whole);
    for (const std::size_t cut : {0, 1, 7, 8, 9, 4096, 65535, 65536}) {
      const std::uint32_t first = way(0, bytes.data(), cut);
      CHECK(way(first, bytes.data() + cut, bytes.size() - cut) == whole);
    }
  }
}

}  // namespace

int main() {
  RUN(ThePublishedValuesComeOut);
  RUN(EveryLengthAtEveryAlignmentIsRight);
  RUN(PartsComeToTheSameAsTheWhole);
}
