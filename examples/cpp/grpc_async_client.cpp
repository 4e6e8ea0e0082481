// Registers one allocation under many names at once: every call is sent before the first answer is awaited,
// so a driver that takes long to open the memory is waited for once. Then unregisters them the same way.
//
//   exporter > region.json           holds the memory; then, in another terminal:
//   grpc_async_client ADDRESS NAME... < region.json

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "exported_memory.h"
#include "inference/grpc_service.grpc.pb.h"

namespace {

using Stub = inference::GRPCInferenceService::Stub;

/** All that a call needs until it is answered. Its address is the tag by which the queue hands it back. */
template <typename Response>
struct Call {
  std::string name;
  grpc::ClientContext context;
  Response response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;

  /** Asks for the answer; a call that is not answered in five seconds ends with DEADLINE_EXCEEDED. */
  explicit Call(std::string region) : name(std::move(region)) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  }

  void await_answer() { reader->Finish(&response, &status, this); }
};

/** Takes `count` answers in the order in which they come. Returns the names of those that were no refusals. */
template <typename Response>
std::vector<std::string> drain(grpc::CompletionQueue& queue, std::size_t count, const char* done) {
  std::vector<std::string> succeeded;
  void* tag = nullptr;
  bool ok = false;
  for (; count > 0 && queue.Next(&tag, &ok); count--) {
    const std::unique_ptr<Call<Response>> call(static_cast<Call<Response>*>(tag));
    if (call->status.ok()) {
      std::cout << call->name << ": " << done << "\n";
      succeeded.push_back(call->name);
    } else {
      std::cout << call->name << ": status " << call->status.error_code() << ": "
                << call->status.error_message() << "\n";
    }
  }
  return succeeded;
}

std::vector<std::string> register_all(Stub& stub, const std::vector<std::string>& names,
                                      const ExportedMemory& memory) {
  grpc::CompletionQueue queue;
  for (const auto& name : names) {
    inference::CudaSharedMemoryRegisterRequest request;
    request.set_name(name);
    request.set_raw_handle(memory.handle);
    request.set_device_id(memory.device_id);
    request.set_byte_size(memory.byte_size);
    // Owned by the queue from here on, until drain() takes it back.
    auto* call = new Call<inference::CudaSharedMemoryRegisterResponse>(name);
    call->reader = stub.AsyncCudaSharedMemoryRegister(&call->context, request, &queue);
    call->await_answer();
  }
  return drain<inference::CudaSharedMemoryRegisterResponse>(queue, names.size(), "registered");
}

std::vector<std::string> unregister_all(Stub& stub, const std::vector<std::string>& names) {
  grpc::CompletionQueue queue;
  for (const auto& name : names) {
    inference::CudaSharedMemoryUnregisterRequest request;
    request.set_name(name);
    auto* call = new Call<inference::CudaSharedMemoryUnregisterResponse>(name);
    call->reader = stub.AsyncCudaSharedMemoryUnregister(&call->context, request, &queue);
    call->await_answer();
  }
  return drain<inference::CudaSharedMemoryUnregisterResponse>(queue, names.size(), "unregistered");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: grpc_async_client ADDRESS NAME... < region.json");
  const std::vector<std::string> names(argv + 2, argv + argc);
  Stub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  // A name that was refused may be another client's: it is not ours to unregister.
  const auto registered = register_all(stub, names, read_exported_memory(std::cin));
  const auto unregistered = unregister_all(stub, registered);
  return unregistered.size() == names.size() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "grpc_async_client: " << error.what() << "\n";
  return 64;
}
