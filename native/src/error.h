#pragma once

#include <stdexcept>
#include <string>
#include <variant>

namespace cudashm {

// Why an expected path ended badly. It crosses into JavaScript as a value, since a throw there is costly.
struct Failure {
  enum class Kind {
    refused,  // the driver answered `code`
    full,     // the device's queue has no room
    closed,   // the memory was closed or freed before
  };
  Kind kind;
  int code = 0;
  std::string name = {};
  const char* call = "";
};

template <class T>
using Result = std::variant<T, Failure>;

// The one thing C++ throws here: the library cannot be used, or the caller broke the rules of a call.
class NativeError : public std::runtime_error {
 public:
  enum class Code { library_missing, library_unusable, argument };

  NativeError(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}

  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace cudashm
