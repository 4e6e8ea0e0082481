// With its source in it: what reads the variables again and again is not for others.
#include "../emulated/environment.cc"  // NOLINT

#include <algorithm>
#include <utility>

#include "target.h"

namespace cudashm::emulated {

namespace {

constexpr const char* names[] = {
#define X(name, asked, version) #name,
    CUDASHM_EMULATED_FUNCTIONS(X)
#undef X
};

}  // namespace

// The table's own file needs every function that is in it.
std::optional<Function> find_function(std::string_view exported) {
  const auto* found = std::find(std::begin(names), std::end(names), exported);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Function>(found - std::begin(names));
}

}  // namespace cudashm::emulated

namespace {

using cudashm::emulated::Environment;

constexpr const char* variables[] = {"DEVICE_COUNT", "MEMORY_BYTES", "DRIVER_VERSION", "UUID_SEED", "FAULTS", "DELAYS",
                                     "NO_IPC",       "NO_PEER",      "OLD_REOPEN",     "LOG",       "HIDE",   "FAULTS_FILE",
                                     "UNKNOWN"};

void CheckInjections(const std::vector<cudashm::emulated::Injection>& injections, uint64_t most) {
  for (const auto& [function, call, value] : injections) {
    CHECK(static_cast<unsigned>(function) < cudashm::emulated::function_count);
    CHECK(!call || *call > 0);
    CHECK(value >= 1 && value <= most);
  }
}

void Check(const Environment& environment) {
  CHECK(environment.device_count >= 0 && environment.device_count <= 16);
  CHECK(environment.memory_bytes >= 1 && environment.memory_bytes <= uint64_t{1} << 46);
  CHECK(environment.driver_version >= 2000 && environment.driver_version <= 99990);
  CheckInjections(environment.faults, 999);
  CheckInjections(environment.delays, 86'400'000);
  for (const int device : environment.visible_devices) CHECK(device >= 0 && device < environment.device_count);
}

// A variable for as long as this lives. Not by setenv, which never gives the memory of a value back.
class Variable {
 public:
  Variable(std::string name, std::string_view value) : name_(std::move(name)), text_(name_ + "=" + std::string(value)) {
    CHECK(putenv(text_.data()) == 0);
  }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::string text_;
};

// The input in one variable after the other, the first byte choosing a second one to have it too.
void Run(std::string_view input) {
  const auto second = input.empty() ? 0 : static_cast<unsigned char>(input[0]) % std::size(variables);
  const Variable visible("CUDA_VISIBLE_DEVICES", input);
  for (const char* variable : variables) {
    const Variable too(std::string("CUDASHM_EMULATED_") + variables[second], input);
    const Variable tried(std::string("CUDASHM_EMULATED_") + variable, input);
    Check(cudashm::emulated::read_environment());
    cudashm::emulated::HiddenFunctions hidden;
    cudashm::emulated::Reader(hidden.problems).hidden("HIDE", hidden.hidden);
  }
}

}  // namespace

Target EnvironmentTarget() {
  return {"environment",
          {"2", "0", "1", "17", "12080", "cuInit=999", "cuIpcOpenMemHandle_v2@3=201,cuMemAlloc_v2=2", "cuInit@1=86400000",
           "cuInit,cuMemFree_v2", "1,0", "GPU-", "/tmp/log", "cuInit@@1==2", "cuInit@=1", "@=", ",,,"},
          Run};
}
