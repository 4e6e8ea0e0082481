// Makes the HTTP requests that it reads from standard input, all at once if they come at once, and prints the
// answers. Paths are sent as they are given; texts that may hold blanks are in base64.
//
//   http_calls URL
//   in:  ID GET PATH
//        ID POST PATH                                 (with no body, as an unregister is sent)
//        ID REGISTER PATH HANDLE DEVICE_ID BYTE_SIZE  (as Triton's C++ client sends it)
//   out: ID STATUS BODY
//        ID error WHY                                 (no answer)

#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "http_request.h"

namespace {

HttpAnswer make(const std::string& url, const std::string& kind, std::istream& line) {
  std::string path;
  line >> path;
  const std::string target = url + base64_decode(path);
  if (kind == "GET") return http_get(target);
  if (kind == "POST") return http_post(target, "");
  std::string handle;
  std::int64_t device_id = 0;
  std::uint64_t byte_size = 0;
  line >> handle >> device_id >> byte_size;
  return http_post(target, register_body({base64_decode(handle), device_id, byte_size}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::mutex output;
  std::vector<std::thread> requests;
  for (std::string text; std::getline(std::cin, text);) {
    requests.emplace_back([&output, url = std::string(argv[1]), text] {
      std::istringstream line(text);
      std::string id;
      std::string kind;
      line >> id >> kind;
      std::ostringstream answer;
      try {
        const auto [status, body] = make(url, kind, line);
        answer << status << " " << base64_encode(body);
      } catch (const std::exception& error) {
        answer << "error " << base64_encode(error.what());
      }
      const std::lock_guard lock(output);
      std::cout << id << " " << answer.str() << std::endl;
    });
  }
  for (auto& request : requests) request.join();
}
