#include "injections.h"

#include <algorithm>
#include <charconv>

namespace cudashm::emulated {

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    items.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return items;
}

std::vector<Injection> parse_injections(std::string_view list, uint64_t least, uint64_t most,
                                        const std::function<void(std::string_view, const std::string&)>& problem) {
  std::vector<Injection> injections;
  for (const std::string_view item : split(list)) {
    const size_t equals = item.find('=');
    const size_t at = item.substr(0, equals).find('@');
    const auto function = find_function(item.substr(0, std::min(equals, at)));
    const auto value = parse_number(equals == std::string_view::npos ? "" : item.substr(equals + 1));
    std::optional<uint64_t> call;
    if (at != std::string_view::npos) call = parse_number(item.substr(at + 1, equals - at - 1));
    if (function && value && *value >= least && *value <= most &&
        (at == std::string_view::npos || (call && *call > 0))) {
      injections.push_back({*function, call, *value});
      continue;
    }
    problem(item, "function=value or function@call=value, with an exported function of the emulated driver, a value "
                  "from " + std::to_string(least) + " to " + std::to_string(most) + " and calls counted from 1");
  }
  return injections;
}

std::optional<uint64_t> injected(const std::vector<Injection>& injections, Function function, uint64_t call) {
  for (const Injection& injection : injections) {
    if (injection.function == function && (!injection.call || *injection.call == call)) return injection.value;
  }
  return std::nullopt;
}

}  // namespace cudashm::emulated
