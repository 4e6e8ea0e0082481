#include <cstring>
#include <string>

#include "check.h"
#include "exporter.h"

TEST("A device says who it is", "CUDASHM_EMULATED_DEVICE_COUNT=2", "CUDASHM_EMULATED_MEMORY_BYTES=1000000") {
  CHECK_OK(cu().cuInit(0));
  int count = 0;
  CHECK_OK(cu().cuDeviceGetCount(&count));
  CHECK_EQUAL(count, 2);
  CUdevice device = -1;
  CHECK_OK(cu().cuDeviceGet(&device, 1));
  CHECK_EQUAL(device, 1);
  char name[64];
  CHECK_OK(cu().cuDeviceGetName(name, sizeof name, 1));
  CHECK(std::strcmp(name, "cudashm emulated GPU") == 0);
  CHECK_OK(cu().cuDeviceGetName(name, 8, 1));
  CHECK(std::strcmp(name, "cudashm") == 0);
  size_t bytes = 0;
  CHECK_OK(cu().cuDeviceTotalMem_v2(&bytes, 1));
  CHECK_EQUAL(bytes, size_t{1000000});
}

TEST("An ordinal that does not exist is INVALID_DEVICE", "CUDASHM_EMULATED_DEVICE_COUNT=2") {
  CHECK_OK(cu().cuInit(0));
  CUdevice device = 0;
  CUcontext context = nullptr;
  int value = 0;
  for (const int ordinal : {-1, 2, 99, 2147483647}) {
    CHECK_EQUAL(cu().cuDeviceGet(&device, ordinal), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cu().cuDeviceGetAttribute(&value, 41, ordinal), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cu().cuDevicePrimaryCtxRetain(&context, ordinal), CUDA_ERROR_INVALID_DEVICE);
  }
}

TEST("UUIDs differ between devices and are the same in another process", "CUDASHM_EMULATED_DEVICE_COUNT=2") {
  CHECK_OK(cu().cuInit(0));
  CUuuid first;
  CUuuid second;
  CUuuid older;
  CHECK_OK(cu().cuDeviceGetUuid_v2(&first, 0));
  CHECK_OK(cu().cuDeviceGetUuid_v2(&second, 1));
  CHECK_OK(cu().cuDeviceGetUuid(&older, 0));
  CHECK(std::memcmp(&first, &second, sizeof first) != 0);
  CHECK(std::memcmp(&first, &older, sizeof first) == 0);
  Exporter exporter;
  CHECK(exporter.ask("uuid") == to_hex(&first, sizeof first));
  Exporter elsewhere({"CUDASHM_EMULATED_UUID_SEED=another machine"});
  CHECK(elsewhere.ask("uuid") != to_hex(&first, sizeof first));
}

TEST("A PCI bus id is 13 bytes and leads back to its device", "CUDASHM_EMULATED_DEVICE_COUNT=3") {
  CHECK_OK(cu().cuInit(0));
  char id[13];
  CHECK_EQUAL(cu().cuDeviceGetPCIBusId(id, 12, 2), CUDA_ERROR_INVALID_VALUE);
  CHECK_OK(cu().cuDeviceGetPCIBusId(id, sizeof id, 2));
  CHECK(std::strcmp(id, "0000:03:00.0") == 0);
  CUdevice device = -1;
  CHECK_OK(cu().cuDeviceGetByPCIBusId(&device, id));
  CHECK_EQUAL(device, 2);
  CHECK_EQUAL(cu().cuDeviceGetByPCIBusId(&device, "0000:99:00.0"), CUDA_ERROR_INVALID_DEVICE);
}

TEST("Every attribute has an answer, 0 where the device has no such thing") {
  CHECK_OK(cu().cuInit(0));
  int value = -1;
  for (int attribute = 1; attribute < 160; ++attribute) {
    CHECK_OK(cu().cuDeviceGetAttribute(&value, attribute, 0));
    CHECK(value >= 0);
  }
  CHECK_OK(cu().cuDeviceGetAttribute(&value, 41, 0));  // unified addressing
  CHECK_EQUAL(value, 1);
  CHECK_OK(cu().cuDeviceGetAttribute(&value, 75, 0));  // compute capability, major
  CHECK_EQUAL(value, 8);
  CHECK_OK(cu().cuDeviceGetAttribute(&value, 115, 0));  // memory pools
  CHECK_EQUAL(value, 0);
  CHECK_OK(cu().cuDeviceGetAttribute(&value, 125, 0));  // IPC events
  CHECK_EQUAL(value, 1);
}

TEST("CUDA_VISIBLE_DEVICES orders the devices", "CUDASHM_EMULATED_DEVICE_COUNT=4", "CUDA_VISIBLE_DEVICES=3,1,9,0") {
  CHECK_OK(cu().cuInit(0));
  int count = 0;
  CHECK_OK(cu().cuDeviceGetCount(&count));
  CHECK_EQUAL(count, 2);
  char id[13];
  CHECK_OK(cu().cuDeviceGetPCIBusId(id, sizeof id, 0));
  CHECK(std::strcmp(id, "0000:04:00.0") == 0);
  CHECK_OK(cu().cuDeviceGetPCIBusId(id, sizeof id, 1));
  CHECK(std::strcmp(id, "0000:02:00.0") == 0);
}

TEST("Devices are peers of each other, not of themselves", "CUDASHM_EMULATED_DEVICE_COUNT=2") {
  CHECK_OK(cu().cuInit(0));
  int can = -1;
  CHECK_OK(cu().cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK_EQUAL(can, 1);
  CHECK_OK(cu().cuDeviceCanAccessPeer(&can, 1, 1));
  CHECK_EQUAL(can, 0);
}

TEST("Without peer access no device is a peer", "CUDASHM_EMULATED_DEVICE_COUNT=2", "CUDASHM_EMULATED_NO_PEER=1") {
  CHECK_OK(cu().cuInit(0));
  int can = -1;
  CHECK_OK(cu().cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK_EQUAL(can, 0);
}
