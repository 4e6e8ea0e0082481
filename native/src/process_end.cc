#include "process_end.h"

#include <atomic>

namespace cudashm {

namespace {
constinit std::atomic<bool> ending = false;
}  // namespace

void MarkProcessEnding() {
  ending.store(true);
}

bool ProcessIsEnding() {
  return ending.load();
}

}  // namespace cudashm
