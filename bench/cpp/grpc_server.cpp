// The CUDA shared memory calls as a C++ gRPC server would do them, after Triton's: one thread on a completion queue,
// a map behind a mutex, the driver called where the call is answered.
//
//   grpc_server PORT LIBRARY

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "cuda_ipc.h"
#include "inference/grpc_service.grpc.pb.h"

namespace {

using grpc::Status;
using grpc::StatusCode;
using inference::CudaSharedMemoryRegisterRequest;
using inference::CudaSharedMemoryRegisterResponse;
using inference::CudaSharedMemoryStatusRequest;
using inference::CudaSharedMemoryStatusResponse;
using inference::CudaSharedMemoryUnregisterRequest;
using inference::CudaSharedMemoryUnregisterResponse;

class Regions {
 public:
  explicit Regions(const char* library) : cuda_(library) {}

  Status answer(const CudaSharedMemoryRegisterRequest& request, CudaSharedMemoryRegisterResponse&) {
    const std::lock_guard lock(mutex_);
    if (regions_.contains(request.name())) return {StatusCode::ALREADY_EXISTS, "taken"};
    CUipcMemHandle handle;
    if (request.raw_handle().size() != sizeof handle) return {StatusCode::INVALID_ARGUMENT, "no handle"};
    std::memcpy(&handle, request.raw_handle().data(), sizeof handle);
    std::size_t allocated = 0;
    const CUdeviceptr pointer = cuda_.open(handle, allocated);
    if (request.byte_size() > allocated) {
      cuda_.close(pointer);
      return {StatusCode::INVALID_ARGUMENT, "too large"};
    }
    regions_[request.name()] = {request.device_id(), request.byte_size(), pointer};
    return Status::OK;
  }

  Status answer(const CudaSharedMemoryUnregisterRequest& request, CudaSharedMemoryUnregisterResponse&) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(request.name());
    if (found == regions_.end()) return Status::OK;
    cuda_.close(found->second.pointer);
    regions_.erase(found);
    return Status::OK;
  }

  Status answer(const CudaSharedMemoryStatusRequest& request, CudaSharedMemoryStatusResponse& response) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(request.name());
    if (found == regions_.end()) return {StatusCode::NOT_FOUND, "unknown"};
    auto& status = (*response.mutable_regions())[found->first];
    status.set_name(found->first);
    status.set_device_id(static_cast<std::uint64_t>(found->second.device_id));
    status.set_byte_size(found->second.byte_size);
    return Status::OK;
  }

 private:
  struct Region {
    std::int64_t device_id = 0;
    std::uint64_t byte_size = 0;
    CUdeviceptr pointer = 0;
  };

  const CudaIpc cuda_;
  std::mutex mutex_;
  std::map<std::string, Region> regions_;
};

/** What the completion queue hands back. */
class Step {
 public:
  virtual ~Step() = default;
  virtual void proceed(bool ok) = 0;
};

/** One call of one method, from its request to the end of its answer; the next one is asked for as it comes. */
template <typename Request, typename Response>
class Call final : public Step {
 public:
  using Answer = grpc::ServerAsyncResponseWriter<Response>;
  using Ask = std::function<void(grpc::ServerContext*, Request*, Answer*, void*)>;

  Call(const Ask& ask, Regions& regions) : ask_(ask), regions_(regions), answer_(&context_) {
    ask(&context_, &request_, &answer_, this);
  }

  void proceed(bool ok) override {
    if (!ok || answered_) {
      delete this;
      return;
    }
    new Call(ask_, regions_);
    answered_ = true;
    Response response;
    const Status status = regions_.answer(request_, response);
    answer_.Finish(response, status, this);
  }

 private:
  const Ask ask_;
  Regions& regions_;
  grpc::ServerContext context_;
  Request request_;
  Answer answer_;
  bool answered_ = false;
};

/** Asks for calls of one method, as many as may be made at a time. */
template <typename Request, typename Response>
void serve(Regions& regions, const typename Call<Request, Response>::Ask& ask) {
  for (int waiting = 0; waiting < 64; ++waiting) new Call<Request, Response>(ask, regions);
}

void run(const char* port, const char* library) {
  Regions regions(library);
  inference::GRPCInferenceService::AsyncService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + port, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) throw std::runtime_error("cannot listen");

  serve<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      regions, [&](auto* context, auto* request, auto* answer, void* tag) {
        service.RequestCudaSharedMemoryRegister(context, request, answer, queue.get(), queue.get(), tag);
      });
  serve<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      regions, [&](auto* context, auto* request, auto* answer, void* tag) {
        service.RequestCudaSharedMemoryUnregister(context, request, answer, queue.get(), queue.get(), tag);
      });
  serve<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
      regions, [&](auto* context, auto* request, auto* answer, void* tag) {
        service.RequestCudaSharedMemoryStatus(context, request, answer, queue.get(), queue.get(), tag);
      });
  void* step = nullptr;
  bool ok = false;
  while (queue->Next(&step, &ok)) static_cast<Step*>(step)->proceed(ok);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  // Nobody is left to stop it when the benchmark is gone.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  try {
    run(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::cerr << "grpc_server: " << error.what() << "\n";
    return 1;
  }
}
