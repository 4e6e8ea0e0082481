import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { holds, timeout } from "./budget.js";
import { FuzzedService } from "./fuzzed-service.js";
import { type Mutate, mutated, named } from "./mutations.js";
import { methodOf, RawGrpc } from "./raw-grpc.js";
import { deepBytes, textIn, wireBytes } from "./wire-bytes.js";

const sentinel = "sentinel";
const triton = "inference.GRPCInferenceService";
const ours = "cudashm.v1.Registry";

let service: FuzzedService;
let grpc: RawGrpc;
beforeAll(async () => {
  service = await FuzzedService.start();
});
afterAll(() => service[Symbol.asyncDispose]());
beforeEach(async () => {
  grpc = new RawGrpc(service.grpcAddress);
  await service.register(sentinel);
});
afterEach(async () => {
  grpc[Symbol.dispose]();
  await service.expectUnharmed();
});

/** Methods, and requests of them that mean something. The handle is filled in. */
const window = { name: sentinel, offset: "0", byte_size: "8" };
const lease = { seconds: "1", nanos: 5_000_000 };
const registration = {
  name: "r",
  device_id: "0",
  byte_size: "64",
  offset: "8",
  lease,
  labels: { team: "a", x: "" },
  exporter: { pid: 1, start_time: "1", boot_id: "b", pid_namespace: "1" },
  replace_generation: "1",
  dry_run: true,
};
const samples = [
  [triton, "ServerLive", {}],
  [triton, "ServerMetadata", {}],
  [triton, "SystemSharedMemoryStatus", { name: "r" }],
  [triton, "SystemSharedMemoryRegister", { name: "r", key: "/k", offset: "1", byte_size: "2" }],
  [triton, "SystemSharedMemoryUnregister", { name: "r" }],
  [triton, "CudaSharedMemoryStatus", { name: sentinel }],
  [triton, "CudaSharedMemoryRegister", { name: "r", device_id: "0", byte_size: "64" }],
  [triton, "CudaSharedMemoryUnregister", { name: "nobody" }],
  [triton, "CudaSharedMemoryUnregister", { name: sentinel }],
  [ours, "GetServer", {}],
  [ours, "ListDevices", {}],
  [ours, "Get", { name: sentinel, wait: { seconds: "0", nanos: 1_000_000 } }],
  [
    ours,
    "List",
    { owner: "anonymous", state: "REGION_STATE_READY", label_prefix: "t", page_size: 2, page_token: "eA" },
  ],
  [ours, "Register", registration],
  [ours, "Register", { ...registration, exporter: undefined, replace_generation: undefined, dry_run: false }],
  [ours, "Renew", { name: sentinel, lease, generation: "1" }],
  [ours, "Unregister", { name: "nobody", generation: "1", wait: { nanos: 1_000_000 }, force: true }],
  [ours, "Checksum", window],
  [ours, "Hold", { resume: "0".repeat(32), resume_grace: { nanos: 1_000_000 } }],
  [ours, "Hold", { resume_grace: { nanos: 1_000_000 } }],
  [ours, "Watch", { from_revision: "1", name: "r" }],
  [ours, "ReadContents", window],
  [ours, "WriteContents", { window }],
  ["grpc.health.v1.Health", "Check", { service: triton }],
  ["grpc.health.v1.Health", "Watch", { service: triton }],
].map(([of, name, message]) => ({
  method: methodOf(of as string, name as string),
  message: message as Readonly<Record<string, unknown>>,
}));
const reflection = ["v1", "v1alpha"].map((version) => ({
  method: {
    path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
    requestStream: true,
    responseStream: true,
  },
  bytes: Buffer.from([0x3a, 0, 0x22, 1, 0x78]),
}));

type Sample = (typeof samples)[number];

function encoded({ method, message }: Sample): Buffer {
  const handle = service.allocations[0]?.handle;
  return method.requestSerialize("device_id" in message ? { ...message, raw_handle: handle } : message);
}

/** What a client can be told. None of it is a fault of the service, and none says that it is gone. */
const refusals = [
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
  "FAILED_PRECONDITION",
  "OUT_OF_RANGE",
  "RESOURCE_EXHAUSTED",
  "DEADLINE_EXCEEDED",
];

async function expectSoundCall(
  method: Parameters<RawGrpc["call"]>[0],
  messages: readonly Uint8Array[],
): Promise<{ readonly code: string }> {
  const outcome = await grpc.call(method, messages);
  // By this client, once it had enough.
  const isCancelled = outcome.code === "CANCELLED" && outcome.messages.length > 0;
  const isUnsupported = outcome.code === "UNIMPLEMENTED" && /System|reflection/.test(method.path);
  if (outcome.code !== "OK" && !isCancelled && !isUnsupported) {
    expect(refusals, `${method.path}: ${outcome.text}`).toContain(outcome.code);
  }
  expect(Buffer.byteLength(outcome.text)).toBeLessThan(2600);
  return outcome;
}

/** In seconds; null if it has none. */
async function leaseOfSentinel(): Promise<number | null | "gone"> {
  const { status, body } = await service.ask("GET", `/v1/regions/${sentinel}`);
  return status === 200 ? (JSON.parse(body) as { lease_seconds: number | null }).lease_seconds : "gone";
}

const instead = (bytes: Buffer) => named(`instead ${bytes.toString("hex")}`, () => bytes);

/** What a message may have become of it: spoiled, or made up from the start. */
const change: fc.Arbitrary<Mutate> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(named("as it is", (bytes) => Buffer.from(bytes))) },
  { weight: 4, arbitrary: mutated },
  { weight: 3, arbitrary: wireBytes.map(instead) },
  {
    weight: 2,
    arbitrary: wireBytes.map((bytes) =>
      named(`then ${bytes.toString("hex")}`, (before) => Buffer.concat([before, bytes])),
    ),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => instead(Buffer.from(bytes))) },
  { weight: 1, arbitrary: deepBytes.map(instead) },
);

test(
  "a message of any bytes is refused or done as it says, and nothing else goes",
  async () => {
    await holds(
      fc.asyncProperty(fc.nat(samples.length - 1), change, async (which, mutate) => {
        const sample = samples[which] as Sample;
        const { method } = sample;
        const bytes = mutate(encoded(sample));
        const { code } = await expectSoundCall(method, [bytes]);
        const lease = await leaseOfSentinel();
        if (lease === null) return;
        // One that has a lease would go at its end.
        if (lease !== "gone") await service.unregister(sentinel);
        await service.register(sentinel);
        // What was done may have come too late for its answer. It has to have been meant.
        expect(code).toBeOneOf(["OK", "DEADLINE_EXCEEDED"]);
        expect(textIn(bytes, 1)).toBeOneOf(["", sentinel]);
        expect(method.path).toMatch(lease === "gone" ? /Unregister$/ : /\/Renew$/);
      }),
      250,
    );
  },
  timeout,
);

test(
  "messages of a stream, of any bytes and in any order, are refused or done as they say",
  async () => {
    const writeContents = methodOf(ours, "WriteContents");
    const parts = [{ window }, { data: Buffer.alloc(4) }, { data: Buffer.alloc(8) }, {}].map((part) =>
      writeContents.requestSerialize(part),
    );
    const part = fc.oneof(
      fc.constantFrom(...parts),
      fc.tuple(fc.constantFrom(...parts), change).map(spoiled),
    );
    const asked = fc.tuple(fc.constantFrom(...reflection), fc.array(change, { maxLength: 3 }));
    await holds(
      fc.asyncProperty(
        fc.array(part, { maxLength: 5 }),
        asked,
        async (messages, [{ method, bytes }, changes]) => {
          await expectSoundCall(writeContents, messages);
          await expectSoundCall(
            method,
            changes.map((mutate) => mutate(bytes)),
          );
          expect(await service.has(sentinel)).toBe(true);
        },
      ),
      60,
    );
  },
  timeout,
);

function spoiled([bytes, mutate]: [Buffer, Mutate]): Buffer {
  return mutate(bytes);
}
