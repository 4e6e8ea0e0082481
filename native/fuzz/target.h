#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// What takes bytes from outside, and bytes to begin with.
struct Target {
  const char* name;
  std::vector<std::string> corpus;
  // Aborts unless what comes of the bytes is right: libFuzzer then tells from where, and keeps the bytes.
  void (*run)(std::string_view input);
};

Target IpcHandleTarget();
Target EnvironmentTarget();
Target ProcessStatTarget();
Target Crc32cTarget();

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
