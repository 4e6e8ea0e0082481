// Made-up input for the parsers, compiled with sanitizers: `fuzz SEED RUNS SECONDS` tries each target RUNS times, or
// for SECONDS if that is not 0. The same seed makes up the same inputs. Needs no libFuzzer, which g++ has not.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <random>

#include "target.h"

// Both sanitizers abort then as CHECK does. UBSan's own way to end calls back nobody.
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1"; }

namespace {

using Random = std::mt19937_64;

// What is tried at the moment, for whoever wants to know what ended the program.
struct Attempt {
  const char* target = nullptr;
  std::uint64_t seed = 0;
  std::uint64_t run = 0;
  std::string input;
} attempt;

void TellAttempt() {
  if (attempt.target == nullptr) return;
  std::fprintf(stderr, "%s: seed %llu, run %llu, input in hex:\n", attempt.target,
               static_cast<unsigned long long>(attempt.seed), static_cast<unsigned long long>(attempt.run));
  for (const char byte : attempt.input) std::fprintf(stderr, "%02x", static_cast<unsigned char>(byte));
  std::fprintf(stderr, "\n");
}

std::size_t Below(Random& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

std::string Piece(Random& random, const std::vector<std::string>& corpus) {
  static const char* const words[] = {"",  " ",  "\n", ")", "(",  ",", "=", "@", "-", "-1", "0", "18446744073709551616",
                                      "+", "1e1", "\0", "%", "GPU-", "\xff", "99999999999999999999999", "4294967296"};
  if (Below(random, 3) == 0) return words[Below(random, std::size(words))];
  const std::string& other = corpus[Below(random, corpus.size())];
  const std::size_t start = Below(random, other.size() + 1);
  return other.substr(start, Below(random, 24));
}

void Mutate(Random& random, const std::vector<std::string>& corpus, std::string& input) {
  const std::size_t at = Below(random, input.size() + 1);
  switch (Below(random, 7)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(random, 8)));
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    case 2:
      input.erase(at, 1 + Below(random, 16));
      break;
    case 3:
      input.insert(at, Piece(random, corpus));
      break;
    case 4:
      input.resize(at);
      break;
    case 5:
      input.insert(at, std::string(Below(random, 64), static_cast<char>(random())));
      break;
    default:
      input.insert(at, input.substr(Below(random, input.size() + 1), Below(random, 32)));
  }
}

void Try(const Target& target, std::uint64_t seed, std::uint64_t runs, std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::uint64_t run = 0;
  for (; time.count() > 0 ? std::chrono::steady_clock::now() < end : run < runs; ++run) {
    // Of its own, so that a run can be told by its number.
    Random random(seed * 0x9e3779b97f4a7c15 + run);
    attempt = {target.name, seed, run, target.corpus[run % target.corpus.size()]};
    // The first ones are as they are.
    if (run >= target.corpus.size()) {
      for (std::size_t left = 1 + Below(random, 5); left > 0; --left) Mutate(random, target.corpus, attempt.input);
    }
    target.run(attempt.input);
  }
  attempt.target = nullptr;
  std::printf("ok %s: %llu inputs\n", target.name, static_cast<unsigned long long>(run));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: fuzz SEED RUNS SECONDS\n");
    return 2;
  }
  // Of CHECK, of a sanitizer and of an exception that nobody catches; what returns from it is ended all the same.
  std::signal(SIGABRT, [](int) { TellAttempt(); });
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t runs = std::strtoull(argv[2], nullptr, 10);
  const std::chrono::seconds time(std::strtoll(argv[3], nullptr, 10));
  for (const Target& target : {IpcHandleTarget(), EnvironmentTarget(), ProcessStatTarget(), Crc32cTarget()}) {
    Try(target, seed, runs, time);
  }
}
