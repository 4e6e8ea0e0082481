// Usage: emulated_tests            runs every test, each in a process of its own
//        emulated_tests --list     prints their names, one a line
//        emulated_tests --run <n>  runs the n-th of the list in this process's child

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "check.h"
#include "exporter.h"

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

namespace {

bool run_in_child(size_t index) {
  std::vector<std::string> environment = tests()[index].environment;
  for (const char* inherited : {"CUDASHM_TEST_LIBRARY", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
    if (const char* value = std::getenv(inherited)) environment.push_back(std::string(inherited) + "=" + value);
  }
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  char program[] = "/proc/self/exe";
  char body[] = "--body";
  std::string number = std::to_string(index);
  char* arguments[] = {program, body, number.data(), nullptr};
  pid_t pid = -1;
  if (posix_spawn(&pid, program, nullptr, nullptr, arguments, variables.data()) != 0) return false;
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string role = count > 1 ? arguments[1] : "";
  if (role == "--exporter") return run_exporter();
  if (role == "--list") {
    for (const Test& test : tests()) std::printf("%s\n", test.name.c_str());
    return 0;
  }
  if (count == 3) {
    const size_t index = std::strtoul(arguments[2], nullptr, 10);
    if (index >= tests().size()) return 2;
    if (role == "--run") return run_in_child(index) ? 0 : 1;
    tests()[index].body();
    return 0;
  }
  size_t failed = 0;
  for (size_t index = 0; index < tests().size(); ++index) {
    const bool passed = run_in_child(index);
    failed += passed ? 0 : 1;
    std::printf("%s - %s\n", passed ? "ok" : "not ok", tests()[index].name.c_str());
    std::fflush(stdout);
  }
  std::printf("%zu passed, %zu failed\n", tests().size() - failed, failed);
  return failed == 0 ? 0 : 1;
}
