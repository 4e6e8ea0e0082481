#include "call_counters.h"

#include <atomic>

namespace cudashm::emulated {
namespace {

struct Counter {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> successes{0};
};

Counter counters[function_count];

Counter& counter(Function function) { return counters[static_cast<unsigned>(function)]; }

}  // namespace

uint64_t count_call(Function function) { return counter(function).calls.fetch_add(1) + 1; }

void count_success(Function function) { counter(function).successes.fetch_add(1); }

uint64_t calls(Function function) { return counter(function).calls.load(); }

uint64_t successes(Function function) { return counter(function).successes.load(); }

}  // namespace cudashm::emulated
