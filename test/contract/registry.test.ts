import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { testDriver } from "../helpers/cudashm.js";
import { registryCases } from "./registry-cases.js";
import type { Doors, Mortal, RegistryCase, RegistryFixture } from "./registry-fixture.js";
import { exporterView, type StartedMemory, startMemory } from "./registry-memory.js";
import { type ServiceName, ServiceUnderTest, setups, tokenHeaders } from "./registry-services.js";
import { holdSession } from "./registry-session.js";

const services = new Map<ServiceName, ServiceUnderTest>();
const mortals: LineProcess[] = [];
let memory: StartedMemory;
let otherMemory: StartedMemory;
let used: ServiceUnderTest | undefined;

beforeAll(async () => {
  const wanted = new Set(registryCases.map(({ on = "shared" }) => on));
  await Promise.all([
    ...[...wanted].map(async (name) => services.set(name, await ServiceUnderTest.start(setups[name]))),
    startMemory(300_000).then((started) => {
      memory = started;
    }),
    startMemory(8192).then((started) => {
      otherMemory = started;
    }),
  ]);
});

// Whatever a case did, its regions can be closed, and then the driver has nothing open.
afterEach(async () => {
  if (used === undefined) return;
  const { grpc } = used.asAdmin();
  for (const { name } of (await grpc.list()).regions) {
    expect(await grpc.unregister(name, { wait_ms: 5000 })).toMatchObject({ pins: 0n });
  }
  expect(used.openHandles()).toBe(0);
  for (const mortal of mortals.splice(0)) await mortal[Symbol.asyncDispose]();
});

afterAll(async () => {
  for (const started of [memory, otherMemory]) await started?.[Symbol.asyncDispose]();
  for (const service of services.values()) await service.stop();
});

// The driver's own counts are part of what every case is judged by.
describe.skipIf(testDriver !== "emulated").each(["http", "grpc"] as const)("over %s,", (protocol) => {
  test.each(registryCases.map((registryCase) => [registryCase.title, registryCase] as const))(
    "%s",
    async (_, { on = "shared", run }: RegistryCase) => {
      used = services.get(on) as ServiceUnderTest;
      await run(fixtureOf(used, protocol));
    },
  );
});

function fixtureOf(service: ServiceUnderTest, protocol: "http" | "grpc"): RegistryFixture {
  const as = (headers = {}): Doors => {
    const pair = service.as(headers);
    return { face: pair[protocol], other: pair[protocol === "http" ? "grpc" : "http"] };
  };
  return {
    ...as(),
    as: (caller) => as(typeof caller === "string" ? tokenHeaders(caller) : caller),
    hold: (options, caller) => holdSession(service.grpcPort, options, caller && tokenHeaders(caller)),
    memory,
    otherMemory,
    startMortal,
    openHandles: () => service.openHandles(),
    opens: () => service.opens(),
    untilInFlight: (count) => service.untilInFlight(count),
  };
}

// The service does not ask whether the handle is of the process: any will do.
async function startMortal(): Promise<Mortal> {
  const process = new LineProcess("/bin/cat", []);
  mortals.push(process);
  const exporter = await exporterView(process.pid);
  return { exporter, end: async () => void (await process.endInput()) };
}
