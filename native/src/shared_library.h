#pragma once

#include <string>

namespace cudashm {

// A library opened with dlopen. Closed again only if `Keep` was never called.
class SharedLibrary {
 public:
  // Throws NativeError (library_missing) with the loader's own words.
  explicit SharedLibrary(const std::string& path);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Null when the library does not export `name`.
  void* Find(const char* name) const;

  // Where the loader found it.
  std::string Location() const;

  // Equal for two objects of one loaded library.
  void* Identity() const { return handle_; }

  // A driver that ran has threads and handlers in the library: it must stay until the process ends.
  void Keep() { kept_ = true; }

 private:
  void* handle_;
  bool kept_ = false;
};

}  // namespace cudashm
