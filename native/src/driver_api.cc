#include "driver_api.h"

#include <string>

#include "error.h"

namespace cudashm {

namespace {

class Resolver {
 public:
  explicit Resolver(const SharedLibrary& library) : library_(library) {}

  // `fallback` is an older name of the same ABI, or null.
  template <class Function>
  void operator()(Function& function, const char* name, const char* fallback = nullptr) const {
    void* symbol = library_.Find(name);
    if (symbol == nullptr && fallback != nullptr) symbol = library_.Find(fallback);
    if (symbol == nullptr) {
      throw NativeError(NativeError::Code::library_unusable,
                        library_.Location() + " has no function " + name);
    }
    function = reinterpret_cast<Function>(symbol);
  }

 private:
  const SharedLibrary& library_;
};

}  // namespace

// Where a _v2 exists, the plain name is the ABI of 32-bit days, so it is a fallback in the two cases alone
// whose signature never changed.
DriverApi DriverApi::Resolve(const SharedLibrary& library) {
  DriverApi api{};
  const Resolver resolve(library);
  resolve(api.init, "cuInit");
  resolve(api.driver_get_version, "cuDriverGetVersion");
  resolve(api.get_error_name, "cuGetErrorName");
  resolve(api.device_get_count, "cuDeviceGetCount");
  resolve(api.device_get, "cuDeviceGet");
  resolve(api.device_get_name, "cuDeviceGetName");
  resolve(api.device_get_uuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid");
  resolve(api.device_total_mem, "cuDeviceTotalMem_v2");
  resolve(api.device_get_pci_bus_id, "cuDeviceGetPCIBusId");
  resolve(api.device_get_attribute, "cuDeviceGetAttribute");
  resolve(api.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  resolve(api.device_primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  resolve(api.ctx_push_current, "cuCtxPushCurrent_v2");
  resolve(api.ctx_pop_current, "cuCtxPopCurrent_v2");
  resolve(api.mem_get_info, "cuMemGetInfo_v2");
  resolve(api.mem_alloc, "cuMemAlloc_v2");
  resolve(api.mem_free, "cuMemFree_v2");
  resolve(api.mem_get_address_range, "cuMemGetAddressRange_v2");
  resolve(api.memcpy_host_to_device, "cuMemcpyHtoD_v2");
  resolve(api.memcpy_device_to_host, "cuMemcpyDtoH_v2");
  resolve(api.stream_synchronize, "cuStreamSynchronize");
  resolve(api.ipc_get_mem_handle, "cuIpcGetMemHandle");
  resolve(api.ipc_open_mem_handle, "cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle");
  resolve(api.ipc_close_mem_handle, "cuIpcCloseMemHandle");
  return api;
}

bool DriverApi::IsEmulated(const SharedLibrary& library) {
  return library.Find("cudashm_emulated_driver") != nullptr;
}

}  // namespace cudashm
