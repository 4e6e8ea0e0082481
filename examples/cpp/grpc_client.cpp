// Registers, lists and unregisters over gRPC, one call at a time.
//
//   exporter > region.json           holds the memory; then, in another terminal:
//   grpc_client ADDRESS register NAME < region.json
//   grpc_client ADDRESS status [NAME]
//   grpc_client ADDRESS unregister NAME
//   grpc_client ADDRESS unregister-all
//
// ADDRESS is such as 127.0.0.1:8001. Ends with 0, or with the number of the gRPC status that it prints.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

#include "exported_memory.h"
#include "inference/grpc_service.grpc.pb.h"

namespace {

using Stub = inference::GRPCInferenceService::Stub;

// Without a deadline a call waits for as long as its server does. A register whose deadline passes is undone.
void limit(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
}

grpc::Status register_region(Stub& stub, const std::string& name, const ExportedMemory& memory) {
  inference::CudaSharedMemoryRegisterRequest request;
  request.set_name(name);
  request.set_raw_handle(memory.handle);  // the 64 bytes as they are, not as base64
  request.set_device_id(memory.device_id);
  request.set_byte_size(memory.byte_size);
  inference::CudaSharedMemoryRegisterResponse response;
  grpc::ClientContext context;  // one for each call
  limit(context);
  return stub.CudaSharedMemoryRegister(&context, request, &response);
}

grpc::Status print_status(Stub& stub, const std::string& name) {
  inference::CudaSharedMemoryStatusRequest request;
  request.set_name(name);  // empty asks for all
  inference::CudaSharedMemoryStatusResponse response;
  grpc::ClientContext context;
  limit(context);
  const auto status = stub.CudaSharedMemoryStatus(&context, request, &response);
  for (const auto& [key, region] : response.regions()) {
    std::cout << key << ": device " << region.device_id() << ", " << region.byte_size() << " bytes\n";
  }
  return status;
}

grpc::Status unregister(Stub& stub, const std::string& name) {
  inference::CudaSharedMemoryUnregisterRequest request;
  request.set_name(name);  // empty means all, also those of other clients
  inference::CudaSharedMemoryUnregisterResponse response;
  grpc::ClientContext context;
  limit(context);
  return stub.CudaSharedMemoryUnregister(&context, request, &response);
}

grpc::Status run(Stub& stub, const std::string& command, const std::string& name) {
  if (command == "register") return register_region(stub, name, read_exported_memory(std::cin));
  if (command == "status") return print_status(stub, name);
  if (command == "unregister-all") return unregister(stub, "");
  if (command == "unregister" && !name.empty()) return unregister(stub, name);
  throw std::runtime_error("expected: register NAME, status [NAME], unregister NAME or unregister-all");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: grpc_client ADDRESS COMMAND [NAME]");
  const auto channel = grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials());
  Stub stub(channel);
  const auto status = run(stub, argv[2], argc > 3 ? argv[3] : "");
  if (!status.ok()) std::cerr << "status " << status.error_code() << ": " << status.error_message() << "\n";
  return status.error_code();
} catch (const std::exception& error) {
  std::cerr << "grpc_client: " << error.what() << "\n";
  return 64;
}
