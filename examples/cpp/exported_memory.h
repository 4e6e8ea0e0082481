#pragma once

#include <cstdint>
#include <iostream>
#include <regex>
#include <stdexcept>
#include <string>

#include "base64.h"

/** What an exporter tells a client about GPU memory it shares. */
struct ExportedMemory {
  /** The 64 bytes of a cudaIpcMemHandle_t. A secret: whoever has them can read and write the memory. */
  std::string handle;
  std::int64_t device_id;
  std::uint64_t byte_size;
};

// The text between the two is the register body of the HTTP API, so that curl can post it as it is and
// `cudashm allocate` can take the exporter's place.

inline void print(std::ostream& out, const ExportedMemory& memory) {
  out << R"({"raw_handle":{"b64":")" << base64_encode(memory.handle) << R"("},"device_id":)"
      << memory.device_id << R"(,"byte_size":)" << memory.byte_size << "}" << std::endl;
}

inline ExportedMemory read_exported_memory(std::istream& in) {
  static const std::regex body(
      R"re(\{"raw_handle":\{"b64":"([A-Za-z0-9+/]{86}==)"\},"device_id":(\d+),"byte_size":(\d+)\})re");
  std::string line;
  std::getline(in, line);
  std::smatch match;
  if (!std::regex_match(line, match, body)) {
    throw std::runtime_error("expected the line that the exporter prints on standard input");
  }
  return {base64_decode(match[1].str()), std::stoll(match[2]), std::stoull(match[3])};
}
