#include "../../src/process_watch.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "child.h"

using namespace cudashm;
using std::chrono::milliseconds;
using Kind = WatchFailure::Kind;
using Way = ProcessWatch::Way;

namespace {

constexpr Way kWays[] = {Way::pidfd, Way::start_time};

// Short, for processes that are watched by their start times.
constexpr milliseconds kLookEvery{1};

// How a watch ended.
struct End {
  std::shared_ptr<std::promise<bool>> promise = std::make_shared<std::promise<bool>>();
  std::future<bool> exited = promise->get_future();

  // A second call throws, and so ends the program.
  ProcessWatch::OnEnd OnEnd() const {
    return [promise = promise](bool exited) { promise->set_value(exited); };
  }
  bool IsTold() const { return exited.wait_for(milliseconds(0)) == std::future_status::ready; }
};

ProcessWatch::Id MustAdd(ProcessWatch& watch, const Child& child, Way way, const End& end) {
  return std::get<ProcessWatch::Id>(watch.Add(child.pid(), child.start_time(), way, end.OnEnd()));
}

WatchFailure Refused(ProcessWatch& watch, pid_t pid, std::uint64_t start_time, Way way) {
  return std::get<WatchFailure>(watch.Add(pid, start_time, way, [](bool) { CHECK(false); }));
}

int Descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

void AnExitIsTold() {
  for (const Way way : kWays) {
    Child child;
    ProcessWatch watch(kLookEvery);
    End end;
    const auto id = MustAdd(watch, child, way, end);
    CHECK(!end.IsTold());
    child.Kill();
    CHECK(end.exited.get());
    watch.Remove(id);
    CHECK(Refused(watch, child.pid(), child.start_time(), way).kind == Kind::gone);
    const auto start_time = child.start_time();
    child.Reap();
    CHECK(Refused(watch, child.pid(), start_time, way).kind == Kind::gone);
  }
}

void AnotherProcessOfThatNumberIsRefused() {
  for (const Way way : kWays) {
    Child child;
    ProcessWatch watch(kLookEvery);
    const WatchFailure failure = Refused(watch, child.pid(), child.start_time() + 1, way);
    CHECK(failure.kind == Kind::another && failure.start_time == child.start_time());
    CHECK(Refused(watch, 0, 0, way).kind == Kind::gone);
    CHECK(Refused(watch, -1, 0, way).kind == Kind::gone);
    CHECK(Refused(watch, 1 << 22, 0, way).kind == Kind::gone);
  }
}

void AWatchThatIsRemovedIsToldThatAndNoMore() {
  for (const Way way : kWays) {
    Child child;
    ProcessWatch watch(kLookEvery);
    End first;
    End second;
    const auto removed = MustAdd(watch, child, way, first);
    const auto kept = MustAdd(watch, child, way, second);
    watch.Remove(removed);
    watch.Remove(removed);
    CHECK(!first.exited.get() && !second.IsTold());
    child.Kill();
    CHECK(second.exited.get());
    watch.Remove(kept);
  }
}

void ManyWatchesOfOneProcessTakeOneDescriptor() {
  Child child;
  const int before = Descriptors();
  ProcessWatch watch;
  std::vector<End> ends(200);
  std::vector<ProcessWatch::Id> ids;
  for (const End& end : ends) ids.push_back(MustAdd(watch, child, Way::pidfd, end));
  // The other two are the thread's own.
  CHECK(Descriptors() == before + 3);
  child.Kill();
  for (End& end : ends) CHECK(end.exited.get());
  for (const auto id : ids) watch.Remove(id);
  CHECK(Descriptors() == before);
}

void AStopForgetsEveryWatchAndTheNextBeginsAnew() {
  for (const Way way : kWays) {
    Child child;
    const int before = Descriptors();
    ProcessWatch watch(kLookEvery);
    End forgotten;
    MustAdd(watch, child, way, forgotten);
    watch.Stop();
    watch.Stop();
    CHECK(Descriptors() == before && !forgotten.IsTold());
    End end;
    const auto id = MustAdd(watch, child, way, end);
    child.Kill();
    CHECK(end.exited.get());
    watch.Remove(id);
    CHECK(Descriptors() == before && !forgotten.IsTold());
  }
}

// Told of the exit or of the removal, whichever came first, and once.
void ExitsRaceRemovals() {
  for (const Way way : kWays) {
    for (int round = 0; round < 50; ++round) {
      Child child;
      ProcessWatch watch(kLookEvery);
      End first;
      End second;
      const auto one = MustAdd(watch, child, way, first);
      const auto other = MustAdd(watch, child, way, second);
      child.Kill();
      for (int i = 0; i < round; ++i) std::this_thread::yield();
      watch.Remove(one);
      CHECK(first.IsTold());
      if (round % 2 == 0) continue;
      watch.Remove(other);
      CHECK(second.IsTold());
    }
  }
}

void AProcessIsNotDeadForTheEndOfItsFirstThread() {
  for (const Way way : kWays) {
    Child child([] {
      std::thread([] {
        for (;;) pause();
      }).detach();
      syscall(SYS_exit, 0);
    });
    while (std::get<ProcessStat>(ReadProcessStat(child.pid())).state != 'Z') std::this_thread::yield();
    ProcessWatch watch(kLookEvery);
    End end;
    const auto id = MustAdd(watch, child, way, end);
    CHECK(end.exited.wait_for(milliseconds(20)) == std::future_status::timeout);
    child.Kill();
    CHECK(end.exited.get());
    watch.Remove(id);
  }
}

// This thread, and those it starts, get `code` from pidfd_open, as in a container whose filter does not know it.
void RefusePidfds(int code) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

void WherePidfdsAreMissingStartTimesAreLookedAt() {
  for (const int code : {ENOSYS, EPERM}) {
    std::thread([code] {
      RefusePidfds(code);
      Child child;
      const int before = Descriptors();
      ProcessWatch watch(kLookEvery);
      End first;
      End second;
      const auto one = MustAdd(watch, child, Way::pidfd, first);
      const auto other = MustAdd(watch, child, Way::pidfd, second);
      CHECK(Descriptors() == before + 2);
      CHECK(Refused(watch, child.pid(), 1, Way::pidfd).kind == Kind::another);
      CHECK(!first.IsTold());
      child.Kill();
      CHECK(first.exited.get() && second.exited.get());
      watch.Remove(one);
      watch.Remove(other);
      CHECK(Descriptors() == before);
    }).join();
  }
}

void AnyOtherRefusalIsTold() {
  std::thread([] {
    RefusePidfds(EMFILE);
    Child child;
    ProcessWatch watch(kLookEvery);
    const WatchFailure failure = Refused(watch, child.pid(), child.start_time(), Way::pidfd);
    CHECK(failure.kind == Kind::system && failure.code == EMFILE);
    CHECK(std::string_view(failure.call) == "pidfd_open");
  }).join();
}

}  // namespace

int main() {
  RUN(AnExitIsTold);
  RUN(AnotherProcessOfThatNumberIsRefused);
  RUN(AWatchThatIsRemovedIsToldThatAndNoMore);
  RUN(ManyWatchesOfOneProcessTakeOneDescriptor);
  RUN(AStopForgetsEveryWatchAndTheNextBeginsAnew);
  RUN(ExitsRaceRemovals);
  RUN(AProcessIsNotDeadForTheEndOfItsFirstThread);
  RUN(WherePidfdsAreMissingStartTimesAreLookedAt);
  RUN(AnyOtherRefusalIsTold);
}
