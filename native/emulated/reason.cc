#include "reason.h"

#include <cstdarg>
#include <cstdio>

namespace cudashm::emulated {
namespace {

thread_local char text[256] = "";

}  // namespace

CUresult refuse(CUresult result, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return result;
}

const char* reason() { return text; }

void clear_reason() { text[0] = '\0'; }

}  // namespace cudashm::emulated
