// Makes the gRPC calls that it reads from standard input, all at once if they come at once, and prints how
// each ended:
//
//   grpc_calls ADDRESS blocking|queue|callback
//   in:  ID call METHOD TIMEOUT_MS REQUEST_JSON      (TIMEOUT_MS 0: no deadline)
//        ID cancel
//   out: ID STATUS_NUMBER RESPONSE_JSON
//        ID STATUS_NUMBER ERROR_TEXT_AS_JSON_STRING

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "inference/grpc_service.grpc.pb.h"

namespace {

using Stub = inference::GRPCInferenceService::Stub;
using google::protobuf::Message;

/** The three ways in which generated C++ code makes a call. */
enum class Style { blocking, queue, callback };

std::string to_json(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) std::abort();
  return json;
}

/** A call under way, cancelled from any thread. */
struct OpenCall {
  grpc::ClientContext context;
  virtual ~OpenCall() = default;
  virtual void finish() = 0;
};

/** The calls under way, by the ids that standard input gave them. */
class OpenCalls {
 public:
  void add(const std::string& id, const std::shared_ptr<OpenCall>& call) {
    const std::lock_guard lock(mutex_);
    calls_[id] = call;
  }

  void cancel(const std::string& id) {
    const std::lock_guard lock(mutex_);
    if (const auto call = calls_.find(id); call != calls_.end()) call->second->context.TryCancel();
  }

  /** Prints how the call ended, and forgets it. */
  void end(const std::string& id, const grpc::Status& status, const Message& response) {
    google::protobuf::StringValue text;
    text.set_value(status.error_message());
    const std::string json = to_json(status.ok() ? response : text);
    const std::lock_guard lock(mutex_);
    std::cout << id << " " << status.error_code() << " " << json << std::endl;
    calls_.erase(id);  // with the response, if nobody else holds the call
    if (calls_.empty()) none_.notify_all();
  }

  void wait_for_all() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return calls_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::map<std::string, std::shared_ptr<OpenCall>> calls_;
};

template <typename Response>
using Reader = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>>;
using Context = grpc::ClientContext;

/** One method's three entry points in the generated stub. */
template <typename Request, typename Response>
struct Method {
  std::function<grpc::Status(Stub&, Context*, const Request&, Response*)> blocking;
  std::function<Reader<Response>(Stub&, Context*, const Request&, grpc::CompletionQueue*)> queue;
  std::function<void(Stub&, Context*, const Request*, Response*, std::function<void(grpc::Status)>)> callback;
};

template <typename Request, typename Response>
struct TypedCall : OpenCall, std::enable_shared_from_this<TypedCall<Request, Response>> {
  OpenCalls& calls;
  std::string id;
  Request request;
  Response response;
  grpc::Status status;
  Reader<Response> reader;

  TypedCall(OpenCalls& open_calls, std::string call_id) : calls(open_calls), id(std::move(call_id)) {}

  void finish() override { calls.end(id, status, response); }

  void start(Stub& stub, const Method<Request, Response>& method, Style style, grpc::CompletionQueue& queue) {
    if (style == Style::callback) {
      method.callback(stub, &this->context, &request, &response, [this](const grpc::Status& result) {
        status = result;
        finish();
      });
    } else if (style == Style::queue) {
      reader = method.queue(stub, &this->context, request, &queue);
      reader->Finish(&response, &status, static_cast<OpenCall*>(this));
    } else {
      std::thread([self = this->shared_from_this(), &stub, &method] {
        self->status = method.blocking(stub, &self->context, self->request, &self->response);
        self->finish();
      }).detach();
    }
  }
};

using Start = std::function<void(Stub&, OpenCalls&, const std::string& id, std::istream& line, Style,
                                 grpc::CompletionQueue&)>;

template <typename Request, typename Response>
Start starter(Method<Request, Response> method) {
  return [method = std::make_shared<const Method<Request, Response>>(std::move(method))](
             Stub& stub, OpenCalls& calls, const std::string& id, std::istream& line, Style style,
             grpc::CompletionQueue& queue) {
    long timeout_ms = 0;
    std::string json;
    line >> timeout_ms;
    std::getline(line, json);
    auto call = std::make_shared<TypedCall<Request, Response>>(calls, id);
    if (!google::protobuf::util::JsonStringToMessage(json, &call->request).ok()) {
      std::cerr << "not such a request: " << json << "\n";
      std::exit(64);
    }
    if (timeout_ms > 0) {
      call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
    }
    calls.add(id, call);
    call->start(stub, *method, style, queue);
  };
}

// The generated names differ by a prefix only.
#define METHOD(name)                                                               \
  {#name, starter<inference::name##Request, inference::name##Response>(            \
              {[](auto& stub, auto... rest) { return stub.name(rest...); },        \
               [](auto& stub, auto... rest) { return stub.Async##name(rest...); }, \
               [](auto& stub, auto... rest) { stub.async()->name(rest...); }})}

const std::map<std::string, Start> methods = {
    METHOD(ServerLive),
    METHOD(ServerReady),
    METHOD(ServerMetadata),
    METHOD(SystemSharedMemoryStatus),
    METHOD(SystemSharedMemoryRegister),
    METHOD(SystemSharedMemoryUnregister),
    METHOD(CudaSharedMemoryStatus),
    METHOD(CudaSharedMemoryRegister),
    METHOD(CudaSharedMemoryUnregister),
};

Style style_of(const std::string& name) {
  if (name == "blocking") return Style::blocking;
  if (name == "queue") return Style::queue;
  return Style::callback;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const Style style = style_of(argv[2]);
  Stub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  OpenCalls calls;
  grpc::CompletionQueue queue;
  std::thread answers([&queue] {
    void* tag = nullptr;
    for (bool ok = false; queue.Next(&tag, &ok);) static_cast<OpenCall*>(tag)->finish();
  });

  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string id;
    std::string command;
    std::string method;
    line >> id >> command;
    if (command == "cancel") {
      calls.cancel(id);
    } else {
      line >> method;
      methods.at(method)(stub, calls, id, line, style, queue);
    }
  }
  calls.wait_for_all();
  queue.Shutdown();
  answers.join();
}
