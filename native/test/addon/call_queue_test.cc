#include "../../src/call_queue.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "gate.h"

using cudashm::CallQueue;
using Room = CallQueue::Room;

namespace {

// Leaked, as everywhere: its lanes never end.
CallQueue& NewQueue(std::size_t lanes, std::size_t waiting) {
  return *new CallQueue("test", lanes, waiting);
}

// Shared with the calls, which may still be leaving it when the test is over.
std::shared_ptr<Gate> OpenGate() {
  auto gate = std::make_shared<Gate>();
  gate->Open();
  return gate;
}

void CallsRunOnOtherThreads() {
  CallQueue& queue = NewQueue(2, 10);
  auto ran = OpenGate();
  auto lane = std::make_shared<std::thread::id>();
  CHECK(queue.Post("call", Room::limited, [ran, lane] {
    *lane = std::this_thread::get_id();
    ran->Pass();
  }));
  ran->AwaitArrivals(1);
  CHECK(*lane != std::this_thread::get_id());
}

void AHungCallCostsOneLane() {
  CallQueue& queue = NewQueue(2, 10);
  auto hung = std::make_shared<Gate>();
  queue.Post("hang", Room::limited, [hung] { hung->Pass(); });
  hung->AwaitArrivals(1);
  auto done = OpenGate();
  for (int i = 0; i < 5; ++i) queue.Post("call", Room::limited, [done] { done->Pass(); });
  done->AwaitArrivals(5);
  const auto running = queue.RunningCalls();
  CHECK(!running.empty());
  CHECK(std::string(running.front().what) == "hang");
  hung->Open();
}

void ExactlyLanesPlusRoomAreTaken() {
  CallQueue& queue = NewQueue(3, 4);
  auto gate = std::make_shared<Gate>();
  int taken = 0;
  while (queue.Post("open", Room::limited, [gate] { gate->Pass(); })) ++taken;
  CHECK(taken == 3 + 4);
  CHECK(queue.Post("close", Room::always, [gate] { gate->Pass(); }));
  CHECK(!queue.Post("open", Room::limited, [] {}));
  gate->AwaitArrivals(3);
  CHECK(!queue.Post("open", Room::limited, [] {}));
  gate->Open();
  gate->AwaitArrivals(taken + 1);
}

// However few of them the poster woke itself.
void IdleLanesTakeAsManyCallsAsWait() {
  CallQueue& queue = NewQueue(6, 10);
  for (int round = 0; round < 50; ++round) {
    auto gate = std::make_shared<Gate>();
    for (int i = 0; i < 6; ++i) queue.Post("hang", Room::limited, [gate] { gate->Pass(); });
    gate->AwaitArrivals(6);
    gate->Open();
    while (!queue.RunningCalls().empty()) std::this_thread::yield();
  }
}

void WhatACallHoldsIsDroppedUnlocked() {
  CallQueue& queue = NewQueue(1, 4);
  auto gate = OpenGate();
  struct PostsWhenDropped {
    CallQueue& queue;
    std::shared_ptr<Gate> gate;
    PostsWhenDropped(CallQueue& q, std::shared_ptr<Gate> g) : queue(q), gate(std::move(g)) {}
    ~PostsWhenDropped() {
      queue.Post("last", Room::always, [gate = gate] { gate->Pass(); });
    }
  };
  queue.Post("call", Room::limited, [held = std::make_shared<PostsWhenDropped>(queue, gate)] {});
  gate->AwaitArrivals(1);
}

void AWakeUpRunsOnAnIdleLaneAndALaterOneTakesItsPlace() {
  CallQueue& queue = NewQueue(2, 4);
  auto ready = OpenGate();
  queue.Post("start a lane", Room::limited, [ready] { ready->Pass(); });
  ready->AwaitArrivals(1);
  auto woken = OpenGate();
  auto replaced = OpenGate();
  const auto before = CallQueue::Clock::now();
  queue.WakeAt(before + std::chrono::milliseconds(5), [replaced] { replaced->Pass(); });
  queue.WakeAt(before + std::chrono::milliseconds(20), [woken] { woken->Pass(); });
  woken->AwaitArrivals(1);
  CHECK(CallQueue::Clock::now() - before >= std::chrono::milliseconds(20));
  CHECK(replaced->arrived() == 0);
}

void ManyThreadsPostAtOnce() {
  CallQueue& queue = NewQueue(8, 1 << 20);
  auto gate = OpenGate();
  std::vector<std::thread> posters;
  for (int i = 0; i < 4; ++i) {
    posters.emplace_back([&queue, gate] {
      for (int j = 0; j < 1000; ++j) CHECK(queue.Post("call", Room::limited, [gate] { gate->Pass(); }));
    });
  }
  for (std::thread& poster : posters) poster.join();
  gate->AwaitArrivals(4000);
}

}  // namespace

int main() {
  RUN(CallsRunOnOtherThreads);
  RUN(AHungCallCostsOneLane);
  RUN(ExactlyLanesPlusRoomAreTaken);
  RUN(IdleLanesTakeAsManyCallsAsWait);
  RUN(WhatACallHoldsIsDroppedUnlocked);
  RUN(AWakeUpRunsOnAnIdleLaneAndALaterOneTakesItsPlace);
  RUN(ManyThreadsPostAtOnce);
}
