#include "arguments.h"

#include <cmath>
#include <string>

namespace cudashm {

namespace {

[[noreturn]] void Refuse(Napi::Env env, std::size_t index, const char* expected) {
  throw Napi::TypeError::New(env, "argument " + std::to_string(index + 1) + " must be " + expected);
}

bool IsIntegerUpTo(double most, Napi::Value value, double& number) {
  if (!value.IsNumber()) return false;
  number = value.As<Napi::Number>().DoubleValue();
  return number >= 0 && number <= most && std::trunc(number) == number;
}

}  // namespace

std::int32_t IntegerArgument(const Napi::CallbackInfo& info, std::size_t index) {
  double number = 0;
  if (IsIntegerUpTo(INT32_MAX, info[index], number)) return static_cast<std::int32_t>(number);
  Refuse(info.Env(), index, "an integer from 0 to 2147483647");
}

std::uint32_t Uint32Argument(const Napi::CallbackInfo& info, std::size_t index) {
  double number = 0;
  if (IsIntegerUpTo(UINT32_MAX, info[index], number)) return static_cast<std::uint32_t>(number);
  Refuse(info.Env(), index, "an integer from 0 to 4294967295");
}

std::uint64_t Uint64Argument(const Napi::CallbackInfo& info, std::size_t index) {
  const Napi::Value value = info[index];
  if (value.IsBigInt()) {
    bool lossless = false;
    const std::uint64_t number = value.As<Napi::BigInt>().Uint64Value(&lossless);
    if (lossless) return number;
  }
  Refuse(info.Env(), index, "a bigint from 0 to 2^64 - 1");
}

ByteView BytesArgument(const Napi::CallbackInfo& info, std::size_t index) {
  const Napi::Value value = info[index];
  if (value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_uint8_array) {
    return BytesOf(value);
  }
  Refuse(info.Env(), index, "a Uint8Array");
}

ByteView BytesOf(Napi::Value value) {
  void* data = nullptr;
  std::size_t size = 0;
  const napi_status status =
      napi_get_typedarray_info(value.Env(), value, nullptr, &size, &data, nullptr, nullptr);
  NAPI_THROW_IF_FAILED(value.Env(), status, ByteView{});
  return {static_cast<std::uint8_t*>(data), data == nullptr ? 0 : size};
}

}  // namespace cudashm
