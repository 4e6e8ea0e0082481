#include "../src/crc32c.h"

#include <cstdint>
#include <memory>

#include "target.h"

namespace {

// Bit by bit, as the polynomial has it.
std::uint32_t Slowly(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

// At once, in two parts and at every alignment, in memory that ends where the bytes do.
void Run(std::string_view input) {
  const std::uint32_t expected = Slowly(input);
  const std::size_t split = input.empty() ? 0 : static_cast<unsigned char>(input.front()) % (input.size() + 1);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    const auto memory = std::make_unique<char[]>(offset + input.size());
    char* const bytes = memory.get() + offset;
    input.copy(bytes, input.size());
    CHECK(cudashm::Crc32cByTable(0, bytes, input.size()) == expected);
    if (cudashm::HasCrc32cInstruction()) CHECK(cudashm::Crc32cByInstruction(0, bytes, input.size()) == expected);
    const std::uint32_t first = cudashm::Crc32c(0, bytes, split);
    CHECK(cudashm::Crc32c(first, bytes + split, input.size() - split) == expected);
  }
}

}  // namespace

Target Crc32cTarget() {
  return {"crc32c", {"", "123456789", std::string(32, '\0'), std::string(300, '\xff')}, Run};
}
