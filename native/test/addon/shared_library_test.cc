#include "../../src/shared_library.h"

#include <string>

#include "../../src/driver_api.h"
#include "../../src/error.h"
#include "check.h"

using namespace cudashm;

namespace {

void AMissingLibraryIsToldInTheLoadersWords() {
  try {
    SharedLibrary library("/nowhere/libcuda.so.1");
    CHECK(false);
  } catch (const NativeError& error) {
    CHECK(error.code() == NativeError::Code::library_missing);
    CHECK(std::string(error.what()).find("/nowhere/libcuda.so.1") != std::string::npos);
  }
}

void AMissingFunctionIsNamed() {
  const SharedLibrary library("libm.so.6");
  try {
    DriverApi::Resolve(library);
    CHECK(false);
  } catch (const NativeError& error) {
    CHECK(error.code() == NativeError::Code::library_unusable);
    CHECK(std::string(error.what()).find("has no function cuInit") != std::string::npos);
  }
}

void OnlyAMarkedLibraryIsEmulated() {
  const SharedLibrary library("libm.so.6");
  CHECK(!DriverApi::IsEmulated(library));
}

void TwoObjectsOfOneLibraryAreTheSame() {
  const SharedLibrary first("libm.so.6");
  const SharedLibrary second("libm.so.6");
  CHECK(first.Identity() == second.Identity());
  CHECK(!first.Location().empty());
}

}  // namespace

int main() {
  RUN(AMissingLibraryIsToldInTheLoadersWords);
  RUN(AMissingFunctionIsNamed);
  RUN(OnlyAMarkedLibraryIsEmulated);
  RUN(TwoObjectsOfOneLibraryAreTheSame);
}
