#pragma once

#include <cstddef>
#include <string>
#include <string_view>

inline constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string base64_encode(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned long group = 0;
    for (std::size_t j = 0; j < 3; j++) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; j++) {
      const bool padding = i + j > bytes.size();
      text += padding ? '=' : base64_alphabet[group >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

/** Skips every character that is not of the alphabet. */
inline std::string base64_decode(std::string_view text) {
  std::string bytes;
  unsigned long group = 0;
  int bits = 0;
  for (const char character : text) {
    const auto value = base64_alphabet.find(character);
    if (value == std::string_view::npos) continue;
    group = (group << 6 | value) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  return bytes;
}
