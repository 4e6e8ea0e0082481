// All of a memory's life on one fake driver, from the open to what is left over: its parts share that driver, the helpers
// below and the order of their calls, so they stay in one file.
#include "../../src/device_memory.h"

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../src/crc32c.h"
#include "../../src/device.h"
#include "check.h"
#include "fake_driver.h"
#include "gate.h"

using namespace cudashm;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kAtOnce{0};

// Leaked, as the driver leaks its devices: the lanes never end.
Device& NewDevice() {
  return *new Device(FakeDriverApi(), 0, 0);
}

template <class T>
struct Promised {
  std::shared_ptr<std::promise<T>> promise = std::make_shared<std::promise<T>>();
  std::future<T> future = promise->get_future();

  std::function<void(T)> Done() const {
    return [promise = promise](T value) { promise->set_value(std::move(value)); };
  }
  T Get() { return future.get(); }
};

using Ended = Promised<std::optional<Failure>>;
using Made = Promised<Result<DeviceMemory::Ptr>>;
using Copied = Promised<Result<DeviceMemory::Bytes>>;
using Summed = Promised<Result<std::uint32_t>>;

Result<DeviceMemory::Ptr> Open(Device& device, milliseconds linger = kAtOnce) {
  Made made;
  DeviceMemory::Open(device, linger, {}, made.Done());
  return made.Get();
}

DeviceMemory::Ptr MustOpen(Device& device, milliseconds linger = kAtOnce) {
  return std::get<DeviceMemory::Ptr>(Open(device, linger));
}

std::optional<Failure> Close(DeviceMemory& memory) {
  Ended ended;
  memory.Close(ended.Done());
  return ended.Get();
}

// Until every lane is through with what was posted before.
void MeetOnAllLanes(Device& device) {
  auto drained = std::make_shared<Gate>();
  for (std::size_t i = 0; i < Device::kMaxLanes; ++i) {
    device.queue.Post("drain", CallQueue::Room::always, [drained] { drained->Pass(); });
  }
  drained->AwaitArrivals(Device::kMaxLanes);
  drained->Open();
}

// Until every call posted before has run, and what these posted on their way out: a call is answered before its lane
// lets go of what it holds, which can be the last of a memory that then posts its close.
void Drain(Device& device) {
  MeetOnAllLanes(device);
  MeetOnAllLanes(device);
}

void AMappingHasTheSizeTheDriverReports() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  CHECK(memory->byte_size() == kFakeBytes);
  CHECK(driver.retains == 1 && driver.releases == 0);
  CHECK(!Close(*memory).has_value());
  CHECK(driver.opens == 1 && driver.closes == 1 && driver.releases == 1);
  CHECK(driver.calls_without_context == 0);
}

void ASecondCloseDoesNothing() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  Ended first;
  Ended second;
  memory->Close(first.Done());
  memory->Close(second.Done());
  CHECK(!first.Get().has_value() && !second.Get().has_value());
  CHECK(!Close(*memory).has_value());
  CHECK(driver.closes == 1);
}

void ARefusedOpenKeepsNothing() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  driver.open_result = 201;
  const auto result = Open(device);
  const Failure& failure = std::get<Failure>(result);
  CHECK(failure.kind == Failure::Kind::refused && failure.code == 201);
  CHECK(failure.name == "FAKE_ERROR" && std::string(failure.call) == "cuIpcOpenMemHandle");
  CHECK(driver.retains == 1 && driver.releases == 1);
}

void AnOpenWithoutASizeIsClosedAgain() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  driver.size_result = 1;
  const auto result = Open(device);
  CHECK(std::string(std::get<Failure>(result).call) == "cuMemGetAddressRange");
  CHECK(driver.opens == 1 && driver.closes == 1 && driver.releases == 1);
}

// Opens a handle whose size the driver does not tell, and whose close it refuses.
void LeaveOneOver(FakeDriver& driver, Device& device, milliseconds linger = kAtOnce) {
  const int closes = driver.closes;
  driver.size_result = 1;
  driver.close_result = 2;
  const auto result = Open(device, linger);
  const Failure& failure = std::get<Failure>(result);
  CHECK(failure.code == 1 && std::string(failure.call) == "cuMemGetAddressRange");
  CHECK(driver.closes == closes);
  driver.size_result = 0;
  driver.close_result = 0;
}

void WhatCouldNotBeClosedIsClosedBeforeTheNextOpen() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto other = MustOpen(device);
  LeaveOneOver(driver, device);
  LeaveOneOver(driver, device);
  CHECK(driver.opens == 3 && driver.closes == 0);
  driver.during_open = [&driver] { CHECK(driver.closes == 2); };
  auto memory = MustOpen(device);
  CHECK(driver.opens == 4 && driver.closes == 2);
  CHECK(!Close(*memory).has_value() && !Close(*other).has_value());
  CHECK(driver.opens == 4 && driver.closes == 4 && driver.releases == 1);
  CHECK(driver.calls_without_context == 0);
}

void WhatCouldNotBeClosedIsClosedBeforeTheContextGoes() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto other = MustOpen(device);
  LeaveOneOver(driver, device);
  driver.during_release = [&driver] { CHECK(driver.closes == 2); };
  CHECK(!Close(*other).has_value());
  CHECK(driver.opens == 2 && driver.closes == 2 && driver.releases == 1);
}

void ALingeringContextIsRidOfWhatCouldNotBeClosed() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  LeaveOneOver(driver, device, milliseconds(1));
  while (driver.releases == 0) std::this_thread::yield();
  CHECK(driver.opens == 1 && driver.closes == 1);
}

void WhatWentWithItsContextIsNotClosedInTheNext() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  LeaveOneOver(driver, device);
  CHECK(driver.retains == 1 && driver.releases == 1);
  auto memory = MustOpen(device);
  CHECK(driver.retains == 2 && driver.closes == 0);
  CHECK(!Close(*memory).has_value());
  CHECK(driver.closes == 1);
}

void WhatIsLeftOverStaysWithAContextThatIsNotTakenBack() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  driver.release_result = 1;
  LeaveOneOver(driver, device);
  driver.release_result = 0;
  auto memory = MustOpen(device);
  CHECK(driver.opens == 2 && driver.closes == 1 && driver.retains == 1);
  CHECK(!Close(*memory).has_value());
  CHECK(driver.opens == 2 && driver.closes == 2);
}

void WhatIsLeftOverIsClosedOnceHoweverManyCome() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto other = MustOpen(device);
  for (int i = 0; i < 20; ++i) LeaveOneOver(driver, device);
  std::vector<Made> many(40);
  for (Made& made : many) DeviceMemory::Open(device, kAtOnce, {}, made.Done());
  std::vector<DeviceMemory::Ptr> memories;
  for (Made& made : many) memories.push_back(std::get<DeviceMemory::Ptr>(made.Get()));
  CHECK(driver.opens == 61 && driver.closes == 20);
  for (const auto& memory : memories) CHECK(!Close(*memory).has_value());
  CHECK(!Close(*other).has_value());
  CHECK(driver.opens == 61 && driver.closes == 61 && driver.releases == 1);
}

void AContextThatCannotBeMadeIsToldAndMadeLater() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  driver.retain_result = 2;
  CHECK(std::string(std::get<Failure>(Open(device)).call) == "cuDevicePrimaryCtxRetain");
  driver.retain_result = 0;
  auto memory = MustOpen(device);
  CHECK(!Close(*memory).has_value());
  CHECK(driver.retains == 2 && driver.releases == 1);
}

void AFailedCloseCanBeTriedAgain() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  driver.close_result = 1;
  CHECK(Close(*memory)->code == 1);
  CHECK(driver.releases == 0);
  Copied refused;
  memory->Read(0, 1, refused.Done());
  CHECK(std::get<Failure>(refused.Get()).kind == Failure::Kind::closed);
  driver.close_result = 0;
  CHECK(!Close(*memory).has_value());
  CHECK(driver.opens == 1 && driver.closes == 1 && driver.releases == 1);
}

void BytesGoInAndComeOut() {
  ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  Ended written;
  memory->Write(60, {1, 2, 3, 4}, written.Done());
  CHECK(!written.Get().has_value());
  CHECK(FakeMemory()[60] == 1 && FakeMemory()[63] == 4);
  Copied read;
  memory->Read(62, 2, read.Done());
  CHECK((std::get<DeviceMemory::Bytes>(read.Get()) == DeviceMemory::Bytes{3, 4}));
  Close(*memory);
}

bool RefusesRange(DeviceMemory& memory, std::uint64_t offset, std::size_t byte_size) {
  try {
    memory.Read(offset, byte_size, [](auto) {});
    return false;
  } catch (const NativeError& error) {
    return error.code() == NativeError::Code::argument;
  }
}

void NoCopyReachesBeyondTheEnd() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  CHECK(RefusesRange(*memory, 64, 1));
  CHECK(RefusesRange(*memory, 0, 65));
  CHECK(RefusesRange(*memory, UINT64_MAX, 2));
  CHECK(RefusesRange(*memory, 1, SIZE_MAX));
  Copied empty;
  memory->Read(64, 0, empty.Done());
  CHECK(std::get<DeviceMemory::Bytes>(empty.Get()).empty());
  CHECK(driver.copies == 0);
  Close(*memory);
}

std::uint32_t Checksum(DeviceMemory& memory, std::uint64_t offset, std::size_t byte_size, std::uint32_t seed) {
  Summed summed;
  memory.Checksum(offset, byte_size, seed, summed.Done());
  return std::get<std::uint32_t>(summed.Get());
}

void AChecksumIsOfTheMemoryAndCarriedOn() {
  ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  std::memcpy(FakeMemory() + 1, "123456789", 9);
  CHECK(Checksum(*memory, 1, 9, 0) == 0xe3069283);
  CHECK(Checksum(*memory, 5, 5, Checksum(*memory, 1, 4, 0)) == 0xe3069283);
  CHECK(Checksum(*memory, 64, 0, 5) == 5);
  Close(*memory);
}

// Larger than any portion, on memory of the test's own.
void AChecksumOfManyPortionsIsThatOfTheWhole() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  std::vector<std::uint8_t> bytes(600'001);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * i / 251);
  CHECK(device.context.Enter(device.id).ok());
  auto memory = std::make_shared<DeviceMemory>(device, kAtOnce, DeviceMemory::Origin::allocated,
                                               reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size());
  CHECK(Checksum(*memory, 0, bytes.size(), 0) == Crc32c(0, bytes.data(), bytes.size()));
  CHECK(driver.copies == 3);
  Close(*memory);
}

void ARefusedCopyAndAClosedMemoryHaveNoChecksum() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  driver.copy_result = 700;
  Summed refused;
  memory->Checksum(0, 8, 0, refused.Done());
  const auto result = refused.Get();
  CHECK(std::get<Failure>(result).code == 700);
  CHECK(std::string(std::get<Failure>(result).call) == "cuMemcpyDtoH");
  Close(*memory);
  Summed late;
  memory->Checksum(0, 0, 0, late.Done());
  CHECK(std::get<Failure>(late.Get()).kind == Failure::Kind::closed);
}

void ACloseWaitsForTheCopiesThatRun() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  Gate gate;
  driver.during_copy = [&gate] { gate.Pass(); };
  Copied first;
  Copied second;
  memory->Read(0, 8, first.Done());
  memory->Read(8, 8, second.Done());
  gate.AwaitArrivals(2);
  Ended ended;
  memory->Close(ended.Done());
  Copied late;
  memory->Read(0, 1, late.Done());
  CHECK(std::get<Failure>(late.Get()).kind == Failure::Kind::closed);
  CHECK(driver.closes == 0);
  gate.Open();
  CHECK(!ended.Get().has_value());
  CHECK(driver.closes == 1);
  CHECK(std::get<DeviceMemory::Bytes>(first.Get()).size() == 8);
  CHECK(std::get<DeviceMemory::Bytes>(second.Get()).size() == 8);
}

void MemoryThatNobodyHoldsIsClosed() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  MustOpen(device);
  Drain(device);
  CHECK(driver.opens == 1 && driver.closes == 1 && driver.releases == 1);
}

void MemoryThatNobodyHoldsIsClosedLaterIfItCannotBeClosedNow() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto other = MustOpen(device);
  driver.close_result = 1;
  MustOpen(device);
  {
    // Its holder tried in vain.
    auto memory = MustOpen(device);
    CHECK(Close(*memory)->code == 1);
  }
  Made made;
  DeviceMemory::Allocate(device, kAtOnce, 48, made.Done());
  made.Get();
  Drain(device);
  CHECK(driver.opens == 3 && driver.closes == 0 && driver.allocations == 1 && driver.frees == 0);
  driver.close_result = 0;
  CHECK(!Close(*other).has_value());
  CHECK(driver.closes == 3 && driver.frees == 1 && driver.releases == 1);
}

void ACopyHoldsMemoryThatNobodyElseHolds() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  Gate gate;
  driver.during_copy = [&gate] { gate.Pass(); };
  Copied read;
  MustOpen(device)->Read(0, 8, read.Done());
  gate.AwaitArrivals(1);
  CHECK(driver.closes == 0);
  gate.Open();
  CHECK(std::get<DeviceMemory::Bytes>(read.Get()).size() == 8);
  Drain(device);
  CHECK(driver.closes == 1);
}

void AnAllocationIsExportedAndFreed() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  Made made;
  DeviceMemory::Allocate(device, kAtOnce, 48, made.Done());
  auto memory = std::get<DeviceMemory::Ptr>(made.Get());
  CHECK(memory->byte_size() == 48);
  Copied handle;
  memory->ExportHandle(handle.Done());
  CHECK((std::get<DeviceMemory::Bytes>(handle.Get()) == DeviceMemory::Bytes(64, 7)));
  CHECK(!Close(*memory).has_value());
  CHECK(driver.allocations == 1 && driver.frees == 1 && driver.releases == 1);
}

void SevenHungOpensLeaveALaneForTheRest() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  auto memory = MustOpen(device);
  Gate gate;
  driver.during_open = [&gate] { gate.Pass(); };
  std::vector<Made> hung(7);
  for (Made& made : hung) DeviceMemory::Open(device, kAtOnce, {}, made.Done());
  gate.AwaitArrivals(7);
  Copied read;
  memory->Read(0, 8, read.Done());
  CHECK(std::get<DeviceMemory::Bytes>(read.Get()).size() == 8);
  CHECK(!Close(*memory).has_value());
  gate.Open();
  for (Made& made : hung) CHECK(!Close(*std::get<DeviceMemory::Ptr>(made.Get())).has_value());
  CHECK(driver.opens == 8 && driver.closes == 8);
}

void TheContextLingersAndIsKeptByANewcomer() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(!Close(*MustOpen(device, std::chrono::hours(1))).has_value());
  CHECK(driver.retains == 1 && driver.releases == 0);
  auto memory = MustOpen(device, milliseconds(1));
  CHECK(driver.retains == 1);
  CHECK(!Close(*memory).has_value());
  while (driver.releases == 0) std::this_thread::yield();
  CHECK(driver.retains == 1 && driver.releases == 1);
}

void ALingerThatIsOverdueSparesAContextInUse() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(!Close(*MustOpen(device, milliseconds(1))).has_value());
  auto memory = MustOpen(device, std::chrono::hours(1));
  const auto overdue = CallQueue::Clock::now() + milliseconds(5);
  while (CallQueue::Clock::now() < overdue) Drain(device);
  CHECK(driver.retains - driver.releases == 1);
  CHECK(!Close(*memory).has_value());
}

}  // namespace

int main() {
  RUN(AMappingHasTheSizeTheDriverReports);
  RUN(ASecondCloseDoesNothing);
  RUN(ARefusedOpenKeepsNothing);
  RUN(AnOpenWithoutASizeIsClosedAgain);
  RUN(WhatCouldNotBeClosedIsClosedBeforeTheNextOpen);
  RUN(WhatCouldNotBeClosedIsClosedBeforeTheContextGoes);
  RUN(ALingeringContextIsRidOfWhatCouldNotBeClosed);
  RUN(WhatWentWithItsContextIsNotClosedInTheNext);
  RUN(WhatIsLeftOverStaysWithAContextThatIsNotTakenBack);
  RUN(WhatIsLeftOverIsClosedOnceHoweverManyCome);
  RUN(AContextThatCannotBeMadeIsToldAndMadeLater);
  RUN(AFailedCloseCanBeTriedAgain);
  RUN(BytesGoInAndComeOut);
  RUN(NoCopyReachesBeyondTheEnd);
  RUN(AChecksumIsOfTheMemoryAndCarriedOn);
  RUN(AChecksumOfManyPortionsIsThatOfTheWhole);
  RUN(ARefusedCopyAndAClosedMemoryHaveNoChecksum);
  RUN(ACloseWaitsForTheCopiesThatRun);
  RUN(MemoryThatNobodyHoldsIsClosed);
  RUN(MemoryThatNobodyHoldsIsClosedLaterIfItCannotBeClosedNow);
  RUN(ACopyHoldsMemoryThatNobodyElseHolds);
  RUN(AnAllocationIsExportedAndFreed);
  RUN(SevenHungOpensLeaveALaneForTheRest);
  RUN(TheContextLingersAndIsKeptByANewcomer);
  RUN(ALingerThatIsOverdueSparesAContextInUse);
}
