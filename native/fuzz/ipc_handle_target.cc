#include <algorithm>
#include <cstring>

#include "../emulated/ipc_handle.h"
#include "target.h"

namespace {

using cudashm::emulated::IpcLocation;

CUipcMemHandle HandleOf(std::string_view input) {
  CUipcMemHandle handle{};
  std::memcpy(handle.reserved, input.data(), std::min(input.size(), sizeof handle.reserved));
  return handle;
}

bool IsSame(const CUipcMemHandle& a, const CUipcMemHandle& b) {
  return std::memcmp(a.reserved, b.reserved, sizeof a.reserved) == 0;
}

// The bytes as a handle, and as what a handle is made of.
void Run(std::string_view input) {
  const CUipcMemHandle handle = HandleOf(input);
  if (const auto location = cudashm::emulated::decode_handle(handle)) {
    CHECK(location->pid > 0 && location->file >= 0);
    CHECK(IsSame(cudashm::emulated::encode_handle(*location), handle));
  }
  IpcLocation location{};
  std::memcpy(static_cast<void*>(&location), input.data(), std::min(input.size(), sizeof location));
  location.physical_device &= 0xffff;
  const CUipcMemHandle forged = cudashm::emulated::encode_handle(location);
  const auto found = cudashm::emulated::decode_handle(forged);
  CHECK(found.has_value() == (location.pid > 0 && location.file >= 0));
  if (found) CHECK(IsSame(cudashm::emulated::encode_handle(*found), forged));
}

}  // namespace

Target IpcHandleTarget() {
  std::vector<std::string> corpus;
  for (const int number : {1, 2, 4194304}) {
    const cudashm::emulated::Nonce nonce{static_cast<unsigned char>(number), 7};
    const CUipcMemHandle handle =
        cudashm::emulated::encode_handle({number, number, number % 3, static_cast<uint64_t>(number) << 20, nonce});
    corpus.emplace_back(reinterpret_cast<const char*>(handle.reserved), sizeof handle.reserved);
  }
  return {"handles", corpus, Run};
}
