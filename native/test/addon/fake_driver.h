#pragma once

#include <atomic>
#include <functional>

#include "../../src/driver_api.h"

// A driver whose every answer the test decides. It counts, and checks that calls come with a current context.
struct FakeDriver {
  std::atomic<int> retains = 0;
  std::atomic<int> releases = 0;
  std::atomic<int> opens = 0;
  std::atomic<int> closes = 0;
  std::atomic<int> allocations = 0;
  std::atomic<int> frees = 0;
  std::atomic<int> copies = 0;
  std::atomic<int> calls_without_context = 0;

  // What the next calls answer.
  std::atomic<int> retain_result = 0;
  std::atomic<int> release_result = 0;
  std::atomic<int> open_result = 0;
  std::atomic<int> size_result = 0;
  std::atomic<int> close_result = 0;
  std::atomic<int> copy_result = 0;

  // Run inside the calls, on the lane.
  std::function<void()> during_open;
  std::function<void()> during_copy;
  std::function<void()> during_release;
};

constexpr std::size_t kFakeBytes = 64;

// Forgets what was counted and planned. Only while no call runs.
FakeDriver& ResetFakeDriver();
const cudashm::DriverApi& FakeDriverApi();
// The host memory behind every fake allocation.
unsigned char* FakeMemory();
