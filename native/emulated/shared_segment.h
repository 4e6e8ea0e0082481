#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "unique_fd.h"

namespace cudashm::emulated {

using Nonce = std::array<unsigned char, 16>;

/** What the first bytes of every memfd of ours say, so that an importer can tell it from any other file. */
struct SegmentHeader {
  char magic[16];
  uint32_t version;
  int32_t physical_device;
  Nonce nonce;
  uint64_t byte_size;
};

inline constexpr char segment_magic[17] = "CUDASHM-SEGMENT\n";
inline constexpr uint32_t segment_version = 1;
inline constexpr const char* segment_name = "cudashm-emulated";
/** The header's share of the file: a multiple of every page size in use, so that what follows can be mapped. */
inline constexpr uint64_t segment_data_offset = 65536;

/**
 * The memory of one allocation: a sealed memfd mapped twice. `bytes` is the driver's own view, used by copies
 * only; `device_pointer` is the address of a view that the CPU may not touch, handed out in place of a GPU's.
 */
class SharedSegment {
 public:
  /** New zeroed memory. Null, with errno, where the system refuses. */
  static std::shared_ptr<SharedSegment> create(uint64_t byte_size, int physical_device);

  /** Memory of another process; `file` was checked by the caller. Null, with errno, where mapping fails. */
  static std::shared_ptr<SharedSegment> map(UniqueFd file, const SegmentHeader& header);

  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  std::byte* bytes() const { return bytes_; }
  uint64_t device_pointer() const { return reinterpret_cast<uint64_t>(device_view_); }
  uint64_t byte_size() const { return header_.byte_size; }
  int physical_device() const { return header_.physical_device; }
  const Nonce& nonce() const { return header_.nonce; }
  int file() const { return file_.get(); }

  /** Importers need the mappings only. */
  void drop_file() { file_ = UniqueFd{}; }

 private:
  SharedSegment(UniqueFd file, const SegmentHeader& header) : file_(std::move(file)), header_(header) {}
  bool map_views();
  size_t mapped_size() const;

  UniqueFd file_;
  SegmentHeader header_;
  std::byte* bytes_ = nullptr;
  void* device_view_ = nullptr;
};

}  // namespace cudashm::emulated
