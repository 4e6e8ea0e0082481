#include "shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace cudashm::emulated {
namespace {

uint64_t whole_pages(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::create(uint64_t byte_size, int physical_device) {
  SegmentHeader header{};
  std::memcpy(header.magic, segment_magic, sizeof header.magic);
  header.version = segment_version;
  header.physical_device = physical_device;
  header.byte_size = byte_size;
  if (getrandom(header.nonce.data(), header.nonce.size(), 0) != static_cast<ssize_t>(header.nonce.size())) {
    return nullptr;
  }
  UniqueFd file(memfd_create(segment_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return nullptr;
  if (ftruncate(file.get(), static_cast<off_t>(segment_data_offset + whole_pages(byte_size))) != 0) return nullptr;
  if (pwrite(file.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return nullptr;
  // Nobody, this process included, can take a page away under a mapping: that would be SIGBUS in the importer.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return nullptr;
  return map(std::move(file), header);
}

std::shared_ptr<SharedSegment> SharedSegment::map(UniqueFd file, const SegmentHeader& header) {
  std::shared_ptr<SharedSegment> segment(new SharedSegment(std::move(file), header));
  return segment->map_views() ? segment : nullptr;
}

bool SharedSegment::map_views() {
  void* view = mmap(nullptr, mapped_size(), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), segment_data_offset);
  if (view == MAP_FAILED) return false;
  bytes_ = static_cast<std::byte*>(view);
  view = mmap(nullptr, mapped_size(), PROT_NONE, MAP_SHARED, file_.get(), segment_data_offset);
  if (view == MAP_FAILED) return false;
  device_view_ = view;
  return true;
}

size_t SharedSegment::mapped_size() const { return whole_pages(header_.byte_size); }

SharedSegment::~SharedSegment() {
  const int saved = errno;
  if (device_view_ != nullptr) munmap(device_view_, mapped_size());
  if (bytes_ != nullptr) munmap(bytes_, mapped_size());
  errno = saved;
}

}  // namespace cudashm::emulated
