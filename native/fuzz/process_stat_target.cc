#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "../emulated/process_identity.h"
#include "../src/process_stat.h"
#include "target.h"

namespace {

const std::string numbers =
    " S 1 2 3 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 7 0 123456 1000 200 18446744073709551615 1 1 0 0 0 0 0 4096\n";

// A folder with a file `stat`, as /proc/<pid> is one.
class Folder {
 public:
  Folder() {
    CHECK(mkdtemp(path_) != nullptr);
    folder_ = open(path_, O_PATH | O_DIRECTORY | O_CLOEXEC);
    file_ = openat(Get(), "stat", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file_ >= 0);
  }
  ~Folder() {
    unlinkat(Get(), "stat", 0);
    close(file_);
    close(folder_);
    rmdir(path_);
  }

  void Write(std::string_view content) {
    CHECK(ftruncate(file_, 0) == 0);
    CHECK(pwrite(file_, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
  }
  int Get() const { return folder_; }

 private:
  char path_[32] = "/tmp/cudashm-fuzz-XXXXXX";
  int folder_ = -1;
  int file_ = -1;
};

// What both readers of the text make of it.
void Run(std::string_view input) {
  static Folder folder;
  folder.Write(input);
  const auto parsed = cudashm::ParseProcessStat(input);
  if (const int* error = std::get_if<int>(&parsed)) CHECK(*error == EPROTO);
  static_cast<void>(cudashm::emulated::start_time(folder.Get()));

  // As the name of a program, of which the kernel keeps 15 characters and in which anything may stand.
  const std::string name(input.substr(0, 15));
  const std::string text = "7 (" + name + ")" + numbers;
  folder.Write(text);
  const auto found = cudashm::ParseProcessStat(text);
  const auto* stat = std::get_if<cudashm::ProcessStat>(&found);
  CHECK(stat != nullptr && stat->state == 'S' && stat->threads == 7 && stat->start_time == 123456);
  CHECK(cudashm::emulated::start_time(folder.Get()) == 123456U);
}

}  // namespace

Target ProcessStatTarget() {
  // The last one is more than is read of the file.
  return {"process stat",
          {"1 (init)" + numbers, "1 (a) b) (c)" + numbers, "1 (Z) Z 0", ")", ") S 1", numbers,
           "1 (" + std::string(1500, 'x') + ")" + numbers},
          Run};
}
