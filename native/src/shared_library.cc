#include "shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include "error.h"

namespace cudashm {

SharedLibrary::SharedLibrary(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    const char* why = dlerror();
    throw NativeError(NativeError::Code::library_missing, why == nullptr ? path : why);
  }
}

SharedLibrary::~SharedLibrary() {
  if (!kept_) dlclose(handle_);
}

void* SharedLibrary::Find(const char* name) const {
  return dlsym(handle_, name);
}

std::string SharedLibrary::Location() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return map->l_name;
}

}  // namespace cudashm
