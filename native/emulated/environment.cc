#include "environment.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "device_uuid.h"

namespace cudashm::emulated {
namespace {

constexpr std::string_view prefix = "CUDASHM_EMULATED_";
constexpr const char* hide = "HIDE";
constexpr int most_devices = 16;
constexpr uint64_t most_memory = uint64_t{1} << 46;
constexpr uint64_t longest_delay_ms = 24ULL * 60 * 60 * 1000;

class Reader {
 public:
  explicit Reader(std::vector<std::string>& problems) : problems_(problems) {}

  void number(const char* name, uint64_t least, uint64_t most, auto& target) {
    const auto value = get(name);
    if (!value) return;
    const auto parsed = parse_number(*value);
    if (!parsed || *parsed < least || *parsed > most) {
      problem(name, *value, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
      return;
    }
    target = static_cast<std::remove_reference_t<decltype(target)>>(*parsed);
  }

  void flag(const char* name, bool& target) {
    const auto value = get(name);
    if (!value) return;
    if (*value != "0" && *value != "1") return problem(name, *value, "0 or 1");
    target = *value == "1";
  }

  void text(const char* name, std::string& target) {
    if (const auto value = get(name)) target = *value;
  }

  void injections(const char* name, uint64_t least, uint64_t most, std::vector<Injection>& target) {
    const auto value = get(name);
    if (!value) return;
    target = parse_injections(*value, least, most, [&](std::string_view item, const std::string& expected) {
      problem(name, item, expected);
    });
  }

  void hidden(const char* name, std::array<bool, function_count>& target) {
    const auto value = get(name);
    if (!value) return;
    for (const std::string_view item : split(*value)) {
      if (const auto function = find_function(item)) {
        target[static_cast<unsigned>(*function)] = true;
      } else {
        problem(name, item, "an exported function of the emulated driver");
      }
    }
  }

  /** A misspelt variable would otherwise be a fault that is never injected. */
  void refuse_unknown() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view line = *entry;
      if (!line.starts_with(prefix)) continue;
      const std::string_view name = line.substr(prefix.size(), line.find('=') - prefix.size());
      bool known = false;
      for (const std::string_view candidate : known_) known = known || candidate == name;
      if (!known) {
        std::string all;
        for (const std::string_view candidate : known_) all.append(all.empty() ? "" : ", ").append(candidate);
        problems_.push_back(std::string(prefix) + std::string(name) +
                                        " is no variable of the emulated driver; those are " + std::string(prefix) +
                                        "{" + all + "}");
      }
    }
  }

 private:
  /** An empty value is the same as none, as a shell's `VARIABLE= command` means it. */
  std::optional<std::string_view> get(const char* name) {
    known_.push_back(name);
    const char* value = std::getenv((std::string(prefix) + name).c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  void problem(const char* name, std::string_view value, const std::string& expected) {
    problems_.push_back(std::string(prefix) + name + ": '" + std::string(value) +
                                    "' cannot be used; expected " + expected);
  }

  std::vector<std::string>& problems_;
  std::vector<std::string_view> known_{hide};
};

/** Like NVIDIA's driver: indices or the start of a UUID, and the first entry that names no device ends the list. */
std::vector<int> visible_devices(const Environment& environment) {
  std::vector<int> devices;
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  if (value == nullptr) {
    for (int index = 0; index < environment.device_count; ++index) devices.push_back(index);
    return devices;
  }
  for (const std::string_view item : split(value)) {
    int found = -1;
    for (int index = 0; index < environment.device_count; ++index) {
      const bool by_number = parse_number(item) == static_cast<uint64_t>(index);
      const bool by_uuid = item.starts_with("GPU-") && device_uuid_text(environment.uuid_seed, index).starts_with(item);
      if (by_number || by_uuid) found = index;
    }
    if (found < 0) break;
    devices.push_back(found);
  }
  return devices;
}

Environment read_environment() {
  Environment environment;
  Reader reader(environment.problems);
  reader.number("DEVICE_COUNT", 0, most_devices, environment.device_count);
  reader.number("MEMORY_BYTES", 1, most_memory, environment.memory_bytes);
  reader.number("DRIVER_VERSION", 2000, 99990, environment.driver_version);
  reader.text("UUID_SEED", environment.uuid_seed);
  reader.injections("FAULTS", 1, largest_result, environment.faults);
  reader.text("FAULTS_FILE", environment.faults_path);
  reader.injections("DELAYS", 1, longest_delay_ms, environment.delays);
  environment.problems.insert(environment.problems.end(), hidden_functions().problems.begin(),
                              hidden_functions().problems.end());
  reader.flag("NO_IPC", environment.no_ipc);
  reader.flag("NO_PEER", environment.no_peer);
  reader.flag("OLD_REOPEN", environment.old_reopen);
  reader.text("LOG", environment.log_path);
  reader.refuse_unknown();
  environment.visible_devices = visible_devices(environment);
  return environment;
}

}  // namespace

const Environment& environment() {
  // Never destroyed: threads may still be inside a call while the process exits.
  static const Environment& instance = *new Environment(read_environment());
  return instance;
}

const HiddenFunctions& hidden_functions() {
  static const HiddenFunctions& instance = []() -> const HiddenFunctions& {
    auto& functions = *new HiddenFunctions;
    Reader(functions.problems).hidden(hide, functions.hidden);
    return functions;
  }();
  return instance;
}

}  // namespace cudashm::emulated
