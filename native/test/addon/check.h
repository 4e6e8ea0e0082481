#pragma once

#include <cstdio>
#include <cstdlib>

// A failed check ends the program: what follows would only hide the cause.
#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (false)

#define RUN(test)                      \
  do {                                 \
    test();                            \
    std::printf("ok %s\n", #test);     \
  } while (false)
