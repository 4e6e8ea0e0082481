#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

#include "base64.h"

/** What an exporter tells a client about GPU memory it shares. */
struct ExportedMemory {
  /** The 64 bytes of a cudaIpcMemHandle_t. A secret: whoever has them can read and write the memory. */
  std::string handle;
  std::int64_t device_id = 0;
  std::uint64_t byte_size = 0;
};

// The text between the two is the register body of the HTTP API, so that curl can post it as it is and
// `cudashm allocate` can take the exporter's place.

inline void print(std::ostream& out, const ExportedMemory& memory) {
  out << R"({"raw_handle":{"b64":")" << base64_encode(memory.handle) << R"("},"device_id":)"
      << memory.device_id << R"(,"byte_size":)" << memory.byte_size << "}" << std::endl;
}

inline ExportedMemory read_exported_memory(std::istream& in) {
  std::string line;
  std::getline(in, line);
  ExportedMemory memory;
  char b64[89];
  const int found = std::sscanf(line.c_str(),
                                R"({"raw_handle":{"b64":"%88[A-Za-z0-9+/=]"},"device_id":%)" SCNd64
                                R"(,"byte_size":%)" SCNu64,
                                b64, &memory.device_id, &memory.byte_size);
  if (found == 3) memory.handle = base64_decode(b64);
  if (memory.handle.size() != 64) {
    throw std::runtime_error("expected the line that the exporter prints on standard input");
  }
  return memory;
}
