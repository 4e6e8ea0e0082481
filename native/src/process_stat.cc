#include "process_stat.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "unique_fd.h"

namespace cudashm {

namespace {

// Fields are counted from 1, as proc(5) has them.
constexpr int kStateField = 3;
constexpr int kThreadsField = 20;
constexpr int kStartTimeField = 22;

template <class Number>
bool ReadNumber(std::string_view field, Number& number) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc{} && end == field.data() + field.size();
}

}  // namespace

ProcessStatResult ParseProcessStat(std::string_view text) {
  // The second field is the program's name in brackets and may itself hold blanks and brackets.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return EPROTO;
  text.remove_prefix(name_end + 1);
  ProcessStat stat{};
  for (int number = kStateField; number <= kStartTimeField; ++number) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return EPROTO;
    text.remove_prefix(start);
    const std::string_view field = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(field.size());
    if (number == kStateField) stat.state = field.empty() ? '?' : field.front();
    if (number == kThreadsField && !ReadNumber(field, stat.threads)) return EPROTO;
    if (number == kStartTimeField && !ReadNumber(field, stat.start_time)) return EPROTO;
  }
  return stat;
}

ProcessStatResult ReadProcessStat(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno;
  char buffer[1024];
  const ssize_t length = read(file.get(), buffer, sizeof buffer);
  if (length < 0) return errno;
  return ParseProcessStat({buffer, static_cast<std::size_t>(length)});
}

}  // namespace cudashm
