#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "function_table.h"
#include "injections.h"

namespace cudashm::emulated {

/** The largest number that can be forced as a result. */
inline constexpr uint64_t largest_result = 999;

/** The CUDASHM_EMULATED_* variables as they stood at the process's first call into the driver. */
struct Environment {
  int device_count = 1;
  uint64_t memory_bytes = uint64_t{8} << 30;
  int driver_version = 12080;
  std::string uuid_seed = "cudashm";
  std::vector<Injection> faults;
  std::string faults_path;
  /** Their values are milliseconds. */
  std::vector<Injection> delays;
  bool no_ipc = false;
  bool no_peer = false;
  bool old_reopen = false;
  /** Physical indices in the order CUDA_VISIBLE_DEVICES gives; all of them where it is unset. */
  std::vector<int> visible_devices;
  std::string log_path;
  /** One sentence for each value that could not be used; cuInit refuses while there is any. */
  std::vector<std::string> problems;
};

const Environment& environment();

/** What CUDASHM_EMULATED_HIDE names. Read when the library is loaded, because dlsym may be called from then on. */
struct HiddenFunctions {
  std::array<bool, function_count> hidden{};
  std::vector<std::string> problems;
};

const HiddenFunctions& hidden_functions();

}  // namespace cudashm::emulated
