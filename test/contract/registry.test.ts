import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import { LineProcess } from "../../src/cli/line-process.js";
import { readExporter } from "../../src/native/exporter-identity.js";
import { startExporter } from "../helpers/cudashm.js";
import { registryCases } from "./registry-cases.js";
import type { ExporterView } from "./registry-face-client.js";
import type { Doors, Memory, Mortal, RegistryCase, RegistryFixture } from "./registry-fixture.js";
import { holdSession } from "./registry-grpc-client.js";
import { type ServiceName, ServiceUnderTest, tokenHeaders } from "./registry-services.js";

const services = new Map<ServiceName, ServiceUnderTest>();
const exporters: ExporterProcess[] = [];
const mortals: LineProcess[] = [];
let memories: Memory[];
let used: ServiceUnderTest | undefined;

beforeAll(async () => {
  const wanted = new Set(registryCases.map(({ on = "shared" }) => on));
  await Promise.all([
    ...[...wanted].map(async (name) => services.set(name, await ServiceUnderTest.start(name))),
    ...["--bytes=300000", "--bytes=8192"].map(async (bytes) => exporters.push(await startExporter([bytes]))),
  ]);
  exporters.sort((a, b) => b.body.byte_size - a.body.byte_size);
  memories = await Promise.all(exporters.map(memoryOf));
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
  for (const exporter of exporters) await exporter[Symbol.asyncDispose]();
  for (const service of services.values()) await service.stop();
});

describe.each(["http", "grpc"] as const)("over %s,", (protocol) => {
  test.each(registryCases.map((registryCase) => [registryCase.title, registryCase] as const))(
    "%s",
    async (_, { on = "shared", run }: RegistryCase) => {
      used = services.get(on) as ServiceUnderTest;
      await run(fixtureOf(used, protocol));
    },
  );
});

function fixtureOf(service: ServiceUnderTest, protocol: "http" | "grpc"): RegistryFixture {
  const [memory, otherMemory] = memories as [Memory, Memory];
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
  };
}

async function memoryOf(exporter: ExporterProcess): Promise<Memory> {
  const { raw_handle, device_id, byte_size } = exporter.body;
  return {
    byteSize: BigInt(byte_size),
    exporter: await exporterView(exporter.pid),
    part: (byteSize = 64n, offset) => ({
      raw_handle: Buffer.from(raw_handle.b64, "base64"),
      device_id: BigInt(device_id),
      byte_size: byteSize,
      ...(offset !== undefined && { offset }),
    }),
    read: (offset, byteSize) => exporter.read(offset, byteSize),
    write: (offset, bytes) => exporter.write(offset, bytes),
  };
}

// The service does not ask whether the handle is of the process: any will do.
async function startMortal(): Promise<Mortal> {
  const process = new LineProcess("/bin/cat", []);
  mortals.push(process);
  const exporter = await exporterView(process.pid);
  return { exporter, end: async () => void (await process.endInput()) };
}

async function exporterView(pid: number): Promise<ExporterView> {
  const { startTime, bootId, pidNamespace } = await readExporter(pid);
  return { pid: BigInt(pid), start_time: startTime, boot_id: bootId, pid_namespace: pidNamespace };
}
