#include "../../src/device_context.h"

#include <thread>

#include "../../src/device.h"
#include "check.h"
#include "fake_driver.h"

using namespace cudashm;
using std::chrono::milliseconds;

namespace {

// Leaked, as the driver leaks its devices, to the lane that never ends and on which a linger does.
Device& NewDevice() {
  auto& device = *new Device(FakeDriverApi(), 0, 0);
  device.queue.Post("start a lane", CallQueue::Room::always, [] {});
  return device;
}

void AVisitorMakesNoContext() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(!device.context.Visit());
  CHECK(driver.retains == 0);
}

void AVisitorKeepsTheContextForItsVisitAlone() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(device.context.Enter(0).ok());
  CHECK(device.context.Visit());
  CHECK(device.context.Visit());
  device.context.Leave(milliseconds(0));
  device.context.EndVisit();
  CHECK(driver.releases == 0);
  CHECK(device.context.With([]() -> Outcome { return {}; }).ok());
  device.context.EndVisit();
  CHECK(driver.retains == 1 && driver.releases == 1);
  CHECK(!device.context.Visit());
}

void AVisitLeavesTheContextToItsUsers() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(device.context.Enter(0).ok());
  CHECK(device.context.Visit());
  device.context.EndVisit();
  CHECK(driver.releases == 0);
  device.context.Leave(milliseconds(0));
  CHECK(driver.releases == 1);
}

void AVisitDoesNotMakeALingerLonger() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(device.context.Enter(0).ok());
  device.context.Leave(milliseconds(20));
  while (device.context.Visit()) device.context.EndVisit();
  CHECK(driver.retains == 1);
  while (driver.releases == 0) std::this_thread::yield();
}

void AContextIsNotLeftBehindByAVisitThatSawItsTimeCome() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(device.context.Enter(0).ok());
  CHECK(device.context.Visit());
  device.context.Leave(milliseconds(1));
  const auto overdue = CallQueue::Clock::now() + milliseconds(5);
  while (CallQueue::Clock::now() < overdue) std::this_thread::yield();
  CHECK(driver.releases == 0);
  device.context.EndVisit();
  CHECK(driver.releases == 1);
}

void AContextThatIsNotTakenBackIsKeptForTheNextUser() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(device.context.Enter(0).ok());
  driver.release_result = 1;
  device.context.Leave(milliseconds(0));
  CHECK(driver.retains == 1 && driver.releases == 1);
  driver.release_result = 0;
  CHECK(device.context.Enter(0).ok());
  device.context.Leave(milliseconds(0));
  CHECK(driver.retains == 1 && driver.releases == 2);
  CHECK(!device.context.Visit());
}

void AContextThatIsGoneAlreadyIsMadeAnew() {
  FakeDriver& driver = ResetFakeDriver();
  Device& device = NewDevice();
  CHECK(device.context.Enter(0).ok());
  driver.release_result = kCudaErrorInvalidContext;
  device.context.Leave(milliseconds(0));
  driver.release_result = 0;
  CHECK(device.context.Enter(0).ok());
  device.context.Leave(milliseconds(0));
  CHECK(driver.retains == 2 && driver.releases == 2);
}

}  // namespace

int main() {
  RUN(AVisitorMakesNoContext);
  RUN(AVisitorKeepsTheContextForItsVisitAlone);
  RUN(AVisitLeavesTheContextToItsUsers);
  RUN(AVisitDoesNotMakeALingerLonger);
  RUN(AContextIsNotLeftBehindByAVisitThatSawItsTimeCome);
  RUN(AContextThatIsNotTakenBackIsKeptForTheNextUser);
  RUN(AContextThatIsGoneAlreadyIsMadeAnew);
}
