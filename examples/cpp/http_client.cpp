// Registers, lists and unregisters over HTTP with libcurl, by the requests of Triton's own C++ client.
//
//   exporter > region.json           holds the memory; then, in another terminal:
//   http_client URL register NAME < region.json
//   http_client URL status [NAME]
//   http_client URL unregister NAME
//   http_client URL unregister-all
//
// URL is such as http://127.0.0.1:8000. Ends with 0, or with 1 after it has printed the refusal.

#include <exception>
#include <iostream>
#include <string>

#include "exported_memory.h"
#include "http_request.h"

namespace {

/** NAME becomes one segment of the path: only escaped can it hold a blank, a slash or a percent sign. */
std::string path(const std::string& name, const std::string& operation) {
  return "/v2/cudasharedmemory" + (name.empty() ? "" : "/region/" + escape(name)) + "/" + operation;
}

HttpAnswer run(const std::string& url, const std::string& command, const std::string& name) {
  if (command == "status") return http_get(url + path(name, "status"));
  if (command == "unregister-all") return http_post(url + path("", "unregister"), "");
  // An unregister with no name means all regions, also those of other clients.
  if (command == "unregister" && !name.empty()) return http_post(url + path(name, "unregister"), "");
  if (command == "register" && !name.empty()) {
    return http_post(url + path(name, "register"), register_body(read_exported_memory(std::cin)));
  }
  throw std::runtime_error("expected: register NAME, status [NAME], unregister NAME or unregister-all");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: http_client URL COMMAND [NAME]");
  const HttpAnswer answer = run(argv[1], argv[2], argc > 3 ? argv[3] : "");
  if (answer.status == 200) {
    std::cout << answer.body << (answer.body.empty() ? "" : "\n");
    return 0;
  }
  std::cerr << "HTTP " << answer.status << ": " << answer.body << "\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << "http_client: " << error.what() << "\n";
  return 64;
}
