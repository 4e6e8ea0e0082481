#include "../../src/process_stat.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "check.h"
#include "child.h"

using namespace cudashm;

namespace {

const std::string kTail =
    " R 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 4 0 18446744073709551615 14 15 16 17 18";

ProcessStat MustParse(const std::string& text) {
  return std::get<ProcessStat>(ParseProcessStat(text));
}

bool IsRefused(const std::string& text) {
  const ProcessStatResult result = ParseProcessStat(text);
  return std::holds_alternative<int>(result) && std::get<int>(result) == EPROTO;
}

void AnyNameIsSkipped() {
  for (const std::string name : {"cat", "", "a b", ")", "(", ") Z 1 2", "\n", "(()) R"}) {
    const ProcessStat stat = MustParse("42 (" + name + ")" + kTail);
    CHECK(stat.state == 'R' && stat.threads == 4 && stat.start_time == UINT64_MAX);
  }
}

void AnEndAtAnyPlaceIsRefusedOrRead() {
  const std::string whole = "42 (cat)" + kTail;
  const std::size_t enough = whole.find(" 14 15");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    if (length >= enough) CHECK(MustParse(cut).threads == 4);
    else if (length < enough - 20) CHECK(IsRefused(cut));
  }
  CHECK(IsRefused("42 (cat) R 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 x 0 99"));
  CHECK(IsRefused("42 (cat) R 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 4 0 -1"));
  CHECK(IsRefused("42 (cat) R 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 4 0 18446744073709551616"));
}

void TheDeadAreToldFromTheLiving() {
  for (const char state : {'R', 'S', 'D', 'T', 't', 'I'}) CHECK(!(ProcessStat{state, 1, 0}.HasExited()));
  for (const char state : {'Z', 'X', 'x'}) {
    CHECK((ProcessStat{state, 1, 0}.HasExited() && ProcessStat{state, 0, 0}.HasExited()));
    CHECK(!(ProcessStat{state, 2, 0}.HasExited()));
  }
}

void AProcessIsReadUntilItIsReaped() {
  Child child;
  CHECK(!std::get<ProcessStat>(ReadProcessStat(child.pid())).HasExited());
  child.Kill();
  while (!std::get<ProcessStat>(ReadProcessStat(child.pid())).HasExited()) std::this_thread::yield();
  child.Reap();
  CHECK(std::get<int>(ReadProcessStat(child.pid())) == ENOENT);
}

// A program may end its first thread alone, and live on in the others.
void AProcessLivesForAsLongAsAnyOfItsThreads() {
  Child child([] {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);
  });
  while (std::get<ProcessStat>(ReadProcessStat(child.pid())).state != 'Z') std::this_thread::yield();
  CHECK(!std::get<ProcessStat>(ReadProcessStat(child.pid())).HasExited());
  child.Kill();
  while (!std::get<ProcessStat>(ReadProcessStat(child.pid())).HasExited()) std::this_thread::yield();
}

}  // namespace

int main() {
  RUN(AnyNameIsSkipped);
  RUN(AnEndAtAnyPlaceIsRefusedOrRead);
  RUN(TheDeadAreToldFromTheLiving);
  RUN(AProcessIsReadUntilItIsReaped);
  RUN(AProcessLivesForAsLongAsAnyOfItsThreads);
}
