#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "exported_memory.h"

struct HttpAnswer {
  long status;
  /** JSON `{"error":"..."}` unless the status is 200. */
  std::string body;
};

/** One request on a connection of its own. Throws if there is no answer. */
inline HttpAnswer http_request(const std::string& url, const std::optional<std::string>& post_body) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  HttpAnswer answer{};
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  // Otherwise libcurl folds `/region/../unregister` into the path that unregisters everything.
  curl_easy_setopt(curl.get(), CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "libcurl-agent/1.0");
  curl_easy_setopt(curl.get(), CURLOPT_TCP_NODELAY, 1L);
  // A timeout of libcurl's own must not raise a signal in a program with threads.
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  if (post_body) {
    // Set like this, libcurl sends `Content-Type: application/x-www-form-urlencoded`. The service takes any.
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(post_body->size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, post_body->c_str());
  }
  curl_easy_setopt(
      curl.get(), CURLOPT_WRITEFUNCTION, +[](char* piece, size_t, size_t size, std::string* body) {
        body->append(piece, size);
        return size;
      });
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  if (const auto result = curl_easy_perform(curl.get()); result != CURLE_OK) {
    throw std::runtime_error(curl_easy_strerror(result));
  }
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

inline HttpAnswer http_get(const std::string& url) { return http_request(url, std::nullopt); }

inline HttpAnswer http_post(const std::string& url, const std::string& body) {
  return http_request(url, body);
}

/** `text` percent-encoded, as one segment of a path. */
inline std::string escape(const std::string& text) {
  const std::unique_ptr<char, decltype(&curl_free)> escaped(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
  return escaped.get();
}

/** The body of a register, its base64 in ended lines of 72 characters, as libb64 writes it. */
inline std::string register_body(const ExportedMemory& memory) {
  std::string b64 = base64_encode(memory.handle);
  for (size_t end = 72; end < b64.size(); end += 72 + 2) b64.insert(end, "\\n");
  b64 += "\\n";
  return R"({"raw_handle":{"b64":")" + b64 + R"("},"device_id":)" + std::to_string(memory.device_id) +
         R"(,"byte_size":)" + std::to_string(memory.byte_size) + "}";
}
