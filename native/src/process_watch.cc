#include "process_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <system_error>

#include "quiet_thread.h"

namespace cudashm {

namespace {

// No process's number: the event that wakes the thread up.
constexpr std::uint64_t kWake = 0;

WatchFailure SystemFailure(const char* call, int code = errno) {
  return {WatchFailure::Kind::system, 0, code, call};
}

// A kernel from before 5.3, or a container's filter that knows none of it.
bool MeansNoPidfds(int code) {
  return code == ENOSYS || code == EPERM || code == ENODEV;
}

bool Exists(pid_t pid) {
  return kill(pid, 0) == 0 || errno == EPERM;
}

// Why `key` is not the process that has its number now; nothing if it is.
std::optional<WatchFailure> Mismatch(pid_t pid, std::uint64_t start_time) {
  const ProcessStatResult result = ReadProcessStat(pid);
  if (const int* code = std::get_if<int>(&result)) {
    if (*code != ENOENT && *code != ESRCH) return SystemFailure("open", *code);
    return WatchFailure{Exists(pid) ? WatchFailure::Kind::hidden : WatchFailure::Kind::gone};
  }
  const auto& stat = std::get<ProcessStat>(result);
  if (stat.start_time != start_time) return WatchFailure{WatchFailure::Kind::another, stat.start_time};
  if (stat.HasExited()) return WatchFailure{WatchFailure::Kind::gone};
  return std::nullopt;
}

}  // namespace

std::variant<ProcessWatch::Id, WatchFailure> ProcessWatch::Add(pid_t pid, std::uint64_t start_time, Way way,
                                                               OnEnd on_end) {
  if (pid <= 0) return WatchFailure{WatchFailure::Kind::gone};
  const Key key{pid, start_time};
  std::unique_lock lock(mutex_);
  auto found = processes_.find(key);
  if (found == processes_.end()) {
    lock.unlock();
    auto opened = Open(key, way);
    if (const auto* failure = std::get_if<WatchFailure>(&opened)) return *failure;
    const auto started = Start();
    if (const auto* failure = std::get_if<WatchFailure>(&started)) return *failure;
    lock.lock();
    Process process{std::move(std::get<UniqueFd>(opened)), {}};
    if (process.pidfd) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = static_cast<std::uint64_t>(pid);
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process.pidfd.get(), &event) != 0) {
        const WatchFailure failure = SystemFailure("epoll_ctl");
        lock.unlock();
        if (watches_.empty()) Stop();
        return failure;
      }
    }
    found = processes_.emplace(key, std::move(process)).first;
    // The thread may be asleep for ever, with nothing to look at.
    if (!found->second.pidfd) Wake();
  } else if (HasExited(key, found->second)) {
    return WatchFailure{WatchFailure::Kind::gone};
  }
  const Id id = next_id_++;
  found->second.watches.emplace(id, std::move(on_end));
  watches_.emplace(id, key);
  return id;
}

void ProcessWatch::Remove(Id id) {
  const auto watch = watches_.extract(id);
  if (watch.empty()) return;
  {
    std::lock_guard lock(mutex_);
    const auto process = processes_.find(watch.mapped());
    if (process != processes_.end()) {
      const auto removed = process->second.watches.extract(id);
      if (!removed.empty()) removed.mapped()(false);
      if (process->second.watches.empty()) processes_.erase(process);
    }
  }
  if (watches_.empty()) Stop();
}

void ProcessWatch::Stop() {
  if (thread_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
  }
  stopping_ = false;
  processes_.clear();
  watches_.clear();
  epoll_ = UniqueFd();
  wake_ = UniqueFd();
}

std::variant<UniqueFd, WatchFailure> ProcessWatch::Open(const Key& key, Way way) {
  const auto& [pid, start_time] = key;
  UniqueFd pidfd;
  if (way == Way::pidfd && !no_pidfds_) {
    pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd) {
      // EINVAL and ENOENT: it is the number of a thread.
      if (errno == ESRCH || errno == EINVAL || errno == ENOENT) return WatchFailure{WatchFailure::Kind::gone};
      if (!MeansNoPidfds(errno)) return SystemFailure("pidfd_open");
      no_pidfds_ = true;
    }
  }
  // Looked at after the pidfd was opened: a process that takes over the number in between is found out.
  if (const auto failure = Mismatch(pid, start_time)) return *failure;
  return pidfd;
}

std::variant<std::monostate, WatchFailure> ProcessWatch::Start() {
  if (thread_.joinable()) return {};
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return SystemFailure("epoll_create");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return SystemFailure("eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWake;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) return SystemFailure("epoll_ctl");
  epoll_ = std::move(epoll);
  wake_ = std::move(wake);
  try {
    thread_ = StartQuietThread("cudashm-watch", [this] { Run(); });
  } catch (const std::system_error& error) {
    epoll_ = UniqueFd();
    wake_ = UniqueFd();
    return SystemFailure("pthread_create", error.code().value());
  }
  return {};
}

void ProcessWatch::Wake() {
  eventfd_write(wake_.get(), 1);
}

void ProcessWatch::Run() {
  Clock::time_point next_look = Clock::now() + look_every_;
  int wait = -1;
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, std::size(events), wait);
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWake) {
        eventfd_t ignored;
        eventfd_read(wake_.get(), &ignored);
      } else {
        const auto pid = static_cast<pid_t>(events[i].data.u64);
        TellOfExits(pid, pid, true);
      }
    }
    if (Clock::now() >= next_look) {
      TellOfExits(1, INT_MAX, false);
      next_look = Clock::now() + look_every_;
    }
    wait = WaitMilliseconds(next_look);
  }
}

int ProcessWatch::WaitMilliseconds(Clock::time_point next_look) const {
  const auto looked_at = [](const auto& process) { return !process.second.pidfd; };
  if (std::none_of(processes_.begin(), processes_.end(), looked_at)) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

void ProcessWatch::TellOfExits(pid_t first, pid_t last, bool has_pidfd) {
  auto process = processes_.lower_bound({first, 0});
  while (process != processes_.end() && process->first.first <= last) {
    // An event may be about a process that was let go of since, so each is asked itself.
    if (static_cast<bool>(process->second.pidfd) == has_pidfd && HasExited(process->first, process->second)) {
      for (auto& [id, on_end] : process->second.watches) on_end(true);
      process = processes_.erase(process);
    } else {
      ++process;
    }
  }
}

bool ProcessWatch::HasExited(const Key& key, const Process& process) {
  if (process.pidfd) {
    pollfd polled{process.pidfd.get(), POLLIN, 0};
    return poll(&polled, 1, 0) == 1;
  }
  const auto mismatch = Mismatch(key.first, key.second);
  // What cannot be seen just now, for want of descriptors say, is looked at again.
  return mismatch.has_value() && mismatch->kind != WatchFailure::Kind::system &&
         mismatch->kind != WatchFailure::Kind::hidden;
}

}  // namespace cudashm
