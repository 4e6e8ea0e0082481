#include <cstring>
#include <string>

#include "check.h"
#include "driver.h"

namespace {

std::string text_at(CUdeviceptr pointer, size_t bytes) {
  std::string text(bytes, '\0');
  CHECK_OK(cu().cuMemcpyDtoH_v2(text.data(), pointer, bytes));
  return text;
}

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

TEST("Copies carry bytes in every direction, at any offset") {
  use_device();
  const CUdeviceptr first = allocate(100);
  const CUdeviceptr second = allocate(100);
  CHECK_OK(cu().cuMemcpyHtoD_v2(first + 93, "0123456", 7));
  CHECK(text_at(first + 90, 10) == std::string("\0\0\0" "0123456", 10));
  CHECK_OK(cu().cuMemcpyDtoD_v2(second, first + 93, 7));
  CHECK(text_at(second, 7) == "0123456");
  CHECK_OK(cu().cuMemcpyDtoD_v2(second + 2, second, 7));
  CHECK(text_at(second, 9) == "010123456");
  CHECK_OK(cu().cuMemsetD8_v2(second + 1, 'x', 3));
  CHECK(text_at(second, 5) == "0xxx2");
  CHECK_OK(cu().cuMemcpyHtoD_v2(first, nullptr, 0));
}

TEST("The asynchronous forms do the same on any stream") {
  use_device();
  const CUdeviceptr first = allocate(16);
  const CUdeviceptr second = allocate(16);
  char back[8] = "";
  CUstream stream = nullptr;
  CHECK_OK(cu().cuStreamCreate(&stream, 0));
  CHECK_OK(cu().cuMemcpyHtoDAsync_v2(first, "ordered", 8, stream));
  CHECK_OK(cu().cuMemcpyDtoDAsync_v2(second, first, 8, stream));
  CHECK_OK(cu().cuMemsetD8Async(second, 'O', 1, stream));
  CHECK_OK(cu().cuMemcpyDtoHAsync_v2(back, second, 8, stream));
  CHECK_OK(cu().cuStreamSynchronize(stream));
  CHECK(std::strcmp(back, "Ordered") == 0);
}

TEST("A unified copy finds out by itself which end is the device") {
  use_device();
  const CUdeviceptr device = allocate(16);
  const char from[] = "unified";
  char to[sizeof from] = "";
  CHECK_OK(cu().cuMemcpy(device, address(from), sizeof from));
  CHECK_OK(cu().cuMemcpyAsync(address(to), device, sizeof from, nullptr));
  CHECK(std::strcmp(to, "unified") == 0);
  to[0] = '\0';
  CHECK_OK(cu().cuMemcpy(address(to), address(from), sizeof from));
  CHECK(std::strcmp(to, "unified") == 0);
}

TEST("A copy past the end of an allocation is refused whole") {
  use_device();
  const CUdeviceptr pointer = allocate(8);
  char buffer[64] = "overrun overrun overrun";
  for (const size_t bytes : {size_t{9}, size_t{64}, SIZE_MAX}) {
    CHECK_EQUAL(cu().cuMemcpyHtoD_v2(pointer, buffer, bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemcpyDtoH_v2(buffer, pointer, bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemcpy(pointer, address(buffer), bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemsetD8_v2(pointer, 1, bytes), CUDA_ERROR_INVALID_VALUE);
  }
  CHECK(text_at(pointer, 8) == std::string(8, '\0'));
}

TEST("A bad device pointer is an error, never a crash") {
  use_device();
  const CUdeviceptr pointer = allocate(8);
  const CUdeviceptr stale = allocate(8);
  CHECK_OK(cu().cuMemFree_v2(stale));
  char buffer[8] = "";
  for (const CUdeviceptr bad : {CUdeviceptr{0}, CUdeviceptr{1}, stale, ~CUdeviceptr{0}}) {
    CHECK_EQUAL(cu().cuMemcpyHtoD_v2(bad, buffer, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemcpyDtoH_v2(buffer, bad, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemcpyDtoD_v2(pointer, bad, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemcpy(bad, pointer, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemcpy(pointer, bad, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cu().cuMemsetD8_v2(bad, 0, 8), CUDA_ERROR_INVALID_VALUE);
  }
  CHECK_EQUAL(cu().cuMemcpyHtoD_v2(address(buffer), buffer, 8), CUDA_ERROR_INVALID_VALUE);
}

TEST("A copy needs a current context") {
  use_device();
  const CUdeviceptr pointer = allocate(8);
  CHECK_OK(cu().cuCtxPopCurrent_v2(nullptr));
  char buffer[8] = "";
  CHECK_EQUAL(cu().cuMemcpyDtoH_v2(buffer, pointer, 8), CUDA_ERROR_INVALID_CONTEXT);
}
