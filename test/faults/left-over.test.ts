import { afterAll, beforeAll, expect, test } from "vitest";
import { type StartedMemory, startMemory } from "../contract/registry-memory.js";
import { FaultyService, faces } from "./faulty-service.js";

const sized = "cuMemGetAddressRange_v2";
const closed = "cuIpcCloseMemHandle";

let memory: StartedMemory;
let other: StartedMemory;

beforeAll(async () => {
  [memory, other] = await Promise.all([startMemory(4096), startMemory(4096)]);
});
afterAll(() => Promise.all([memory, other].map((each) => each[Symbol.asyncDispose]())));

/** Has a register's open be refused after the handle was opened, and its close as well, `closes` times. */
async function leaveOver(service: FaultyService, face: (typeof faces)[number], closes = 1): Promise<void> {
  const first = Array.from({ length: closes }, (_, index) => ({ name: closed, k: index + 1 }));
  service.faulty.refuseAll([{ name: sized, k: 1 }, ...first], 1);
  service.faulty.newCalls();
  await expect(service.clients[face].register("a", memory.part())).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: expect.stringMatching(
      /^failed to register .* 'a': invalid args: CUDA_ERROR_INVALID_VALUE \(1\): /,
    ),
  });
  const calls = service.faulty.newCalls();
  expect([calls.count(sized, 1), calls.count(closed, 1)]).toEqual([1, closes]);
  service.faulty.heal();
}

test.each(faces)("what a register over %s leaves open is closed before the context goes", async (face) => {
  await using service = await FaultyService.start();
  await leaveOver(service, face);
  expect([service.openHandles(), service.heldContexts(), service.registry.mappings]).toEqual([0, 0, 0]);
});

test.each(faces)("what a register over %s leaves open is closed before the next open", async (face) => {
  await using service = await FaultyService.start({ contextLingerMs: 60_000 });
  await leaveOver(service, face);
  expect([service.openHandles(), service.registry.mappings]).toEqual([1, 0]);
  const client = service.clients[face];
  await client.register("a", memory.part());
  expect([service.openHandles(), service.registry.mappings]).toEqual([1, 1]);
  await client.unregister("a");
  expect([service.openHandles(), service.registry.mappings]).toEqual([0, 0]);
});

test("what a register leaves open while others are registered is closed by the next probe", async () => {
  await using service = await FaultyService.start();
  const client = service.clients.http;
  await client.register("b", other.part());
  await leaveOver(service, "http");
  expect([service.openHandles(), service.registry.mappings]).toEqual([2, 1]);
  await service.faulty.driver.probe([0]);
  expect([service.openHandles(), service.registry.mappings]).toEqual([1, 1]);
  await client.unregister("b");
  await service.untilNoContextIsHeld();
  expect(service.openHandles()).toBe(0);
});

test("what cannot be closed at all goes with its context, and the next one is not asked for it", async () => {
  await using service = await FaultyService.start();
  await leaveOver(service, "http", 2);
  expect([service.openHandles(), service.heldContexts()]).toEqual([1, 0]);
  const client = service.clients.http;
  await client.register("a", memory.part());
  await client.unregister("a");
  const calls = service.faulty.newCalls();
  expect([calls.count("cuIpcOpenMemHandle_v2"), calls.count(closed), calls.refused(closed)]).toEqual([
    1, 1, 0,
  ]);
});
