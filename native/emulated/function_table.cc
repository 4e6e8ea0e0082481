#include "function_table.h"

#include "driver_api.h"
#include "environment.h"

namespace cudashm::emulated {
namespace {

// Of their own, since they are looked up while the library is loaded, when the rows may not be there yet.
constexpr const char* names[] = {
#define X(name, asked, version) #name,
    CUDASHM_EMULATED_FUNCTIONS(X)
#undef X
};

struct Row {
  std::string_view asked;
  int version;
  void* address;
};

const Row rows[] = {
#define X(name, asked, version) {asked, version, reinterpret_cast<void*>(&name)},
    CUDASHM_EMULATED_FUNCTIONS(X)
#undef X
};

}  // namespace

const char* function_name(Function function) { return names[static_cast<unsigned>(function)]; }

std::optional<Function> find_function(std::string_view exported) {
  for (unsigned index = 0; index < function_count; ++index) {
    if (exported == names[index]) return static_cast<Function>(index);
  }
  return std::nullopt;
}

ProcAddress find_proc_address(std::string_view asked, int version) {
  const Row* best = nullptr;
  bool too_new = false;
  for (unsigned index = 0; index < function_count; ++index) {
    const Row& row = rows[index];
    if (row.asked != asked || hidden_functions().hidden[index] || row.version > environment().driver_version) continue;
    if (row.version > version) {
      too_new = true;
    } else if (best == nullptr || row.version > best->version) {
      best = &row;
    }
  }
  if (best != nullptr) return {best->address, 0};
  return {nullptr, too_new ? 2 : 1};
}

}  // namespace cudashm::emulated
