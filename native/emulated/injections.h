#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "function_table.h"

namespace cudashm::emulated {

/** A value forced on a function: on one of its calls, counted from 1, or on every call. */
struct Injection {
  Function function;
  std::optional<uint64_t> call;
  uint64_t value;
};

std::optional<uint64_t> parse_number(std::string_view text);

/** The parts of `list` between its commas. */
std::vector<std::string_view> split(std::string_view list);

/**
 * What `function=value,function@call=value` says, with values from `least` to `most`. `problem` is told each item that
 * cannot be used, and what would be.
 */
std::vector<Injection> parse_injections(std::string_view list, uint64_t least, uint64_t most,
                                        const std::function<void(std::string_view, const std::string&)>& problem);

/** What is forced on the call of that number, if anything. */
std::optional<uint64_t> injected(const std::vector<Injection>& injections, Function function, uint64_t call);

}  // namespace cudashm::emulated
