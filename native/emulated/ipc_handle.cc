#include "ipc_handle.h"

#include <cstddef>
#include <cstring>

#include "hash.h"

namespace cudashm::emulated {
namespace {

constexpr char handle_magic[17] = "CUDASHM-EMULATED";
constexpr uint16_t handle_version = 1;
constexpr uint64_t checksum_seed = 0x6375646173686d31;

struct Layout {
  char magic[16];
  uint16_t version;
  uint16_t physical_device;
  int32_t pid;
  int32_t file;
  uint32_t unused;
  uint64_t start_time;
  Nonce nonce;
  uint64_t checksum;
};
static_assert(sizeof(Layout) == sizeof(CUipcMemHandle));
static_assert(offsetof(Layout, checksum) == 56);

uint64_t checksum(const Layout& layout) { return hash_bytes(&layout, offsetof(Layout, checksum), checksum_seed); }

}  // namespace

CUipcMemHandle encode_handle(const IpcLocation& location) {
  Layout layout{};
  std::memcpy(layout.magic, handle_magic, sizeof layout.magic);
  layout.version = handle_version;
  layout.physical_device = static_cast<uint16_t>(location.physical_device);
  layout.pid = location.pid;
  layout.file = location.file;
  layout.start_time = location.start_time;
  layout.nonce = location.nonce;
  layout.checksum = checksum(layout);
  CUipcMemHandle handle;
  std::memcpy(handle.reserved, &layout, sizeof handle.reserved);
  return handle;
}

std::optional<IpcLocation> decode_handle(const CUipcMemHandle& handle) {
  Layout layout;
  std::memcpy(&layout, handle.reserved, sizeof layout);
  const bool ours = std::memcmp(layout.magic, handle_magic, sizeof layout.magic) == 0;
  if (!ours || layout.version != handle_version || layout.unused != 0 || layout.checksum != checksum(layout)) {
    return std::nullopt;
  }
  // The checksum keeps accidents out; whoever computes one on purpose still names a process and a file by number.
  if (layout.pid <= 0 || layout.file < 0) return std::nullopt;
  return IpcLocation{layout.pid, layout.file, layout.physical_device, layout.start_time, layout.nonce};
}

}  // namespace cudashm::emulated
