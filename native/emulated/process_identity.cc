#include "process_identity.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "unique_fd.h"

namespace cudashm::emulated {

std::optional<uint64_t> start_time(int proc_directory) {
  const UniqueFd file(openat(proc_directory, "stat", O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char buffer[1024];
  const ssize_t length = read(file.get(), buffer, sizeof buffer);
  if (length <= 0) return std::nullopt;
  std::string_view rest(buffer, static_cast<size_t>(length));
  // The second field is the program's name in brackets and may itself hold blanks and brackets.
  const size_t name_end = rest.rfind(')');
  errno = EPROTO;
  if (name_end == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    const size_t blank = rest.find_first_not_of(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank);
    if (field < 22) rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  uint64_t ticks = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), ticks).ec != std::errc{}) return std::nullopt;
  return ticks;
}

std::optional<uint64_t> own_start_time() {
  const UniqueFd directory(open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return std::nullopt;
  return start_time(directory.get());
}

}  // namespace cudashm::emulated
