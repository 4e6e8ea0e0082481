#pragma once
// A test runs in a process of its own, started by name with the variables it asks for, because what the emulated
// driver reads and counts is per process.

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

struct Test {
  std::string name;
  std::vector<std::string> environment;
  std::function<void()> body;
};

std::vector<Test>& tests();

struct Registration {
  Registration(std::string name, std::vector<std::string> environment, std::function<void()> body) {
    tests().push_back({std::move(name), std::move(environment), std::move(body)});
  }
};

#define TEST_JOIN2(a, b) a##b
#define TEST_JOIN(a, b) TEST_JOIN2(a, b)
#define TEST(name, ...)                                                                           \
  static void TEST_JOIN(body_, __LINE__)();                                                       \
  static const Registration TEST_JOIN(registration_, __LINE__)(name, {__VA_ARGS__}, TEST_JOIN(body_, __LINE__)); \
  static void TEST_JOIN(body_, __LINE__)()

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

#define CHECK(condition) \
  do {                   \
    if (!(condition)) fail(__FILE__, __LINE__, "expected " #condition); \
  } while (false)

#define CHECK_EQUAL(actual, expected)                                                                     \
  do {                                                                                                    \
    const auto actual_value = (actual);                                                                   \
    const decltype(actual_value) expected_value = (expected);                                             \
    if (!(actual_value == expected_value)) {                                                              \
      fail(__FILE__, __LINE__, std::string(#actual " is ") + std::to_string(actual_value) + ", expected " \
                                   + std::to_string(expected_value) + " (" + cu().cudashm_emulated_reason() + ")"); \
    }                                                                                                     \
  } while (false)

#define CHECK_OK(call) CHECK_EQUAL(call, CUDA_SUCCESS)
