#pragma once

#include <functional>
#include <string>
#include <thread>

namespace cudashm {

// A thread that takes no signals: they are the main thread's business, and faults stay with who made them. `name`
// shows in the process's thread list. Throws std::system_error where no thread can be started.
std::thread StartQuietThread(const std::string& name, std::function<void()> run);

}  // namespace cudashm
