#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "driver.h"

/** Another process with a driver of its own, told what to do line by line. */
class Exporter {
 public:
  explicit Exporter(std::vector<std::string> environment = {});
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  ~Exporter();

  /** Sends one command and answers its reply; the commands are listed in exporter.cc. */
  std::string ask(const std::string& command);

  /** Allocates, writes the text at the start, and answers the handle. */
  CUipcMemHandle share(size_t bytes, const std::string& text, int device = 0);

  pid_t pid() const { return pid_; }
  void kill_and_reap();

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

/** The other side: what `--exporter` runs. */
int run_exporter();

std::string to_hex(const void* data, size_t size);
CUipcMemHandle handle_from_hex(const std::string& hex);
