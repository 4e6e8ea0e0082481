// The process that owns GPU memory. Allocates, prints the line by which clients register the memory, and
// holds it until standard input ends (Ctrl-D).
//
//   exporter [BYTES [DEVICE]]        on NVIDIA's driver; for the emulated one put before it
//                                    LD_LIBRARY_PATH="$(npx cudashm emulated-driver)"
//
// Meanwhile, each line on standard input reaches the memory:
//   write OFFSET TEXT
//   read OFFSET BYTES                prints them

#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include "cuda_driver.h"
#include "exported_memory.h"

namespace {

void answer(const DeviceMemory& memory, std::istringstream line) {
  std::string command;
  std::size_t offset = 0;
  std::size_t byte_size = 0;
  line >> command >> offset;
  if (command == "write" && line) {
    std::string text;
    line.get();  // the blank before TEXT
    std::getline(line, text);
    memory.write(offset, text);
    std::cout << "written" << std::endl;
  } else if (command == "read" && line >> byte_size) {
    std::cout << memory.read(offset, byte_size) << std::endl;
  } else {
    throw std::runtime_error("expected: write OFFSET TEXT, or: read OFFSET BYTES");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t byte_size = argc > 1 ? std::stoull(argv[1]) : 4096;
  const int device = argc > 2 ? std::stoi(argv[2]) : 0;
  const CudaDriver driver;
  const DeviceMemory memory(driver, device, byte_size);
  print(std::cout, {memory.handle(), device, byte_size});

  for (std::string line; std::getline(std::cin, line);) answer(memory, std::istringstream(line));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "exporter: " << error.what() << "\n";
  return 1;
}
