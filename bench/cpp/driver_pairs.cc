// Opens and closes a handle for a while, with nothing of ours around the driver's calls:
//
//   driver_pairs LIBRARY SECONDS HANDLE_HEX        prints microseconds a pair

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "cuda_ipc.h"

namespace {

CUipcMemHandle from_hex(const std::string& hex) {
  CUipcMemHandle handle{};
  for (std::size_t at = 0; at < sizeof handle.reserved; ++at) {
    handle.reserved[at] = static_cast<char>(std::stoi(hex.substr(at * 2, 2), nullptr, 16));
  }
  return handle;
}

double micros_a_pair(const CudaIpc& cuda, const CUipcMemHandle& handle, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto started = Clock::now();
  std::chrono::duration<double> elapsed{};
  double pairs = 0;
  do {
    std::size_t byte_size = 0;
    cuda.close(cuda.open(handle, byte_size));
    ++pairs;
    elapsed = Clock::now() - started;
  } while (elapsed.count() < seconds);
  return elapsed.count() * 1e6 / pairs;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  try {
    const CudaIpc cuda(arguments[1]);
    std::cout << micros_a_pair(cuda, from_hex(arguments[3]), std::atof(arguments[2])) << "\n";
  } catch (const std::exception& error) {
    std::cerr << "driver_pairs: " << error.what() << "\n";
    return 1;
  }
}
