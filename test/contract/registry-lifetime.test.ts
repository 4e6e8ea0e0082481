import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test as testOfAnyDriver } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
import { changeOf, expectRefusal, noSuchRegion, refusalOf } from "./registry-fixture.js";
import { type StartedMemory, startMemory } from "./registry-memory.js";
import { type FacePair, ServiceUnderTest } from "./registry-services.js";
import { holdSession } from "./registry-session.js";

// What takes time, or a service of its own: both faces go through it at once.

let memory: StartedMemory;
beforeAll(async () => {
  memory = await startMemory(8192);
});
afterAll(() => memory[Symbol.asyncDispose]());

// The driver's own counts tell whether a service that stopped had closed what it had.
const test = testOfAnyDriver.skipIf(testDriver !== "emulated");

const bothOf = ({ http, grpc }: FacePair) => [http, grpc] as const;

test("a lease that is not renewed ends its region, and is told so over both faces", async () => {
  const service = await ServiceUnderTest.start({ args: [] });
  const faces = bothOf(service.as());
  const watches = await Promise.all(faces.map((face) => face.watch()));
  const generations = new Map<string, bigint>();
  for (const face of faces) {
    const leased = { ...memory.part(), lease_ms: 1000 };
    await face.register(`${face.protocol} renewed`, leased);
    await face.renew(`${face.protocol} renewed`, { lease_ms: 60_000 });
    generations.set(face.protocol, (await face.register(face.protocol, leased)).generation);
  }
  for (const watch of watches) {
    const events = await watch.take(6);
    for (const [name, generation] of generations) {
      const owner = "anonymous";
      expect(events).toContainEqual(changeOf("unregistered", name, "lease_expired", { generation, owner }));
    }
    watch[Symbol.dispose]();
  }
  for (const face of faces) {
    for (const name of generations.keys()) {
      await expectRefusal(face.get(name), "NOT_FOUND", noSuchRegion(name));
      await expectRefusal(face.renew(name), "NOT_FOUND", noSuchRegion(name));
      expect(await face.get(`${name} renewed`)).toMatchObject({ state: "ready", lease_ms: 60_000 });
    }
  }
  await service.stop();
});

test("a service that stops ends every watch, wait and session with the same words, and closes what it has", async () => {
  const service = await ServiceUnderTest.start({ args: [] });
  const faces = bothOf(service.as());
  const [http] = faces;
  await http.register("r", memory.part());
  const watches = await Promise.all(faces.map((face) => face.watch()));
  const session = await holdSession(service.grpcPort);
  const waiting = faces.map((face) => refusalOf(face.get("none", 300_000)));
  await service.untilInFlight(5);
  const stopped = service.stop();
  const exiting = { code: "UNAVAILABLE", message: "Server exiting" };
  for (const watch of watches) expect(await refusalOf(watch.take(1))).toEqual(exiting);
  for (const each of waiting) expect(await each).toEqual(exiting);
  expect(await session.ended).toMatchObject(exiting);
  await stopped;
});

test("after a restart both faces tell the new run, what it took up, and what of its history is not known", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-registry-state-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const setup = { args: [`--state-file=${join(folder, "state")}`] };
  const old = await ServiceUnderTest.start(setup);
  const { http: before } = old.as();
  const exported = {
    ...memory.part(100n, 8n),
    exporter: memory.exporter,
    labels: { a: "b" },
    lease_ms: 60_000,
  };
  const region = await before.register("exported", exported);
  const { generation } = await before.register("unproved", memory.part());
  const first = await before.server();
  await old.stop();

  const service = await ServiceUnderTest.start(setup);
  const faces = bothOf(service.as());
  const [http, grpc] = faces;
  await http.get("exported", 60_000);
  await expect.poll(async () => (await http.server()).adoption.pending).toBe(0n);
  const server = await http.server();
  expect(await grpc.server()).toEqual(server);
  expect(server).toMatchObject({
    epoch: first.epoch + 1n,
    adoption: {
      pending: 0n,
      adopted: 1n,
      refused: [{ name: "unproved", generation, reason: expect.stringMatching(/./) }],
    },
  });
  expect(server.instance_id).not.toBe(first.instance_id);
  expect(server.revision).toBeGreaterThan(first.revision);
  for (const face of faces) {
    expect(await face.get("exported")).toMatchObject({
      generation: region.generation,
      fingerprint: expect.stringMatching(/./),
      reason: "adopted",
      registered_at: region.registered_at,
      protocol: "http",
      byte_size: 100n,
      offset: 8n,
      labels: { a: "b" },
      lease_ms: 60_000,
      exporter: memory.exporter,
      verified: true,
    });
    await expectRefusal(face.get("unproved"), "NOT_FOUND", noSuchRegion("unproved"));
  }
  const watches = await Promise.all(faces.map((face) => face.watch({ from_revision: 1n })));
  const events = await watches[0]?.take(2);
  expect(events).toEqual([
    { gap: { from: 1n, to: server.revision - 1n } },
    changeOf("adopted", "exported", "adopted", { generation: region.generation }),
  ]);
  expect(await watches[1]?.take(2)).toEqual(events);
  for (const watch of watches) watch[Symbol.dispose]();
  expect((await grpc.register("next", memory.part())).generation).toBeGreaterThan(generation);
  await service.stop();
});
