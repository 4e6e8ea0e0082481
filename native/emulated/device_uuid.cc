#include "device_uuid.h"

#include <cstdio>
#include <cstring>

#include "hash.h"

namespace cudashm::emulated {

CUuuid device_uuid(const std::string& seed, int physical_index) {
  CUuuid uuid;
  for (uint64_t half = 0; half < 2; ++half) {
    const uint64_t hash = hash_bytes(seed.data(), seed.size(), static_cast<uint64_t>(physical_index) * 2 + half);
    std::memcpy(uuid.bytes + half * sizeof hash, &hash, sizeof hash);
  }
  return uuid;
}

std::string device_uuid_text(const std::string& seed, int physical_index) {
  const CUuuid uuid = device_uuid(seed, physical_index);
  std::string text = "GPU-";
  for (int index = 0; index < 16; ++index) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", uuid.bytes[index]);
    if (index == 4 || index == 6 || index == 8 || index == 10) text += '-';
    text += byte;
  }
  return text;
}

}  // namespace cudashm::emulated
