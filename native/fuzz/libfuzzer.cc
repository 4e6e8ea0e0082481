// One target, TARGET, with libFuzzer, which sees what code its inputs reach.
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "target.h"

namespace {

const Target& TheTarget() {
  static const Target target = TARGET();
  return target;
}

}  // namespace

// The last argument may be the folder of inputs: the target's own ones go there before libFuzzer reads it.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::filesystem::path folder = (*argv)[*argc - 1];
  if (!std::filesystem::is_directory(folder)) return 0;
  const std::vector<std::string>& corpus = TheTarget().corpus;
  for (std::size_t number = 0; number < corpus.size(); ++number) {
    std::ofstream file(folder / ("own-" + std::to_string(number)), std::ios::binary | std::ios::trunc);
    CHECK(file << corpus[number] << std::flush);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  TheTarget().run({reinterpret_cast<const char*>(data), size});
  return 0;
}
