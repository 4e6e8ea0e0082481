import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { LosslessNumber, stringify } from "lossless-json";
import { afterAll, beforeAll, expect, test } from "vitest";
import { registryClient, tritonClient, type UnaryClient } from "../kill/grpc-client.js";
import { holds, timeout } from "./budget.js";
import { expectSound, FuzzedService, regionTarget } from "./fuzzed-service.js";
import { requestText } from "./raw-http.js";

let service: FuzzedService;
let triton: UnaryClient;
let registry: UnaryClient;
let handles: Readonly<Record<Handle, Buffer>>;
beforeAll(async () => {
  service = await FuzzedService.start();
  triton = tritonClient(service.grpcAddress);
  registry = registryClient(service.grpcAddress);
  const [good, other] = service.allocations.map(({ handle }) => handle) as [Buffer, Buffer];
  const spoiled = Buffer.from(good);
  spoiled[40] = (spoiled[40] ?? 0) ^ 1;
  handles = {
    good,
    other,
    spoiled,
    foreign: Buffer.alloc(64, 7),
    short: good.subarray(1),
    none: Buffer.alloc(0),
    long: Buffer.concat([good, good]),
  };
});
afterAll(async () => {
  triton.close();
  registry.close();
  await service.expectUnharmed();
  await service[Symbol.asyncDispose]();
});

type Handle = "good" | "other" | "spoiled" | "foreign" | "short" | "none" | "long";

interface Outcome {
  readonly code: string;
  readonly text: string;
}

function over(
  client: UnaryClient,
  method: string,
  request: object,
): Promise<Outcome & { response?: unknown }> {
  return new Promise((resolve) => {
    client[method]?.(request, new Metadata(), (error: ServiceError | null, response) => {
      if (error === null) resolve({ code: "OK", text: "", response });
      else resolve({ code: status[error.code] ?? String(error.code), text: error.details });
    });
  });
}

async function overHttp(
  method: string,
  target: string,
  body: string,
): Promise<Outcome & { response?: unknown }> {
  const answer = await service.line.ask(requestText(method, target, { body }));
  expectSound(answer);
  if (answer.status === 200) return { code: "OK", text: "", response: answer.body };
  const { error } = JSON.parse(answer.body) as { error: string };
  return { code: answer.headers.get("x-error-code") ?? "none", text: error };
}

/** Refusals of the same request have the same words, but where one face cannot be asked what the other can. */
function expectAgreement(http: Outcome, grpc: Outcome, { hasWords = true } = {}): void {
  expect(grpc.code).toBe(http.code);
  if (hasWords) expect(grpc.text).toBe(http.text);
}

const handle = fc.constantFrom<Handle>(
  "good",
  "good",
  "good",
  "other",
  "spoiled",
  "foreign",
  "short",
  "none",
  "long",
);
const nameOfRegion = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 4 }).map((text) => text.toWellFormed()),
  fc.constantFrom(
    ".",
    "..",
    "...",
    "__proto__",
    "a/b",
    "a%2fb",
    "%",
    "\0",
    "\x7f",
    "\u0085",
    "\u2028",
    "\ufeff",
    "?#",
  ),
  fc.constantFrom(
    "x".repeat(1024),
    "x".repeat(1025),
    "\u{1f600}".repeat(256),
    "\u{1f600}".repeat(257),
    "%".repeat(1024),
  ),
);
const uint64 = fc.oneof(
  fc.constantFrom(0n, 1n, 64n, 4095n, 4096n, 4097n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);
const device = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0n) },
  { weight: 1, arbitrary: fc.constantFrom(1n, 2n, 99n, 2n ** 31n, 2n ** 32n, 2n ** 63n - 1n) },
);

test(
  "a register of Triton's comes to the same over both faces, whatever is in it",
  async () => {
    const request = fc.record({ name: nameOfRegion, handle, device, byteSize: uint64 });
    await holds(
      fc.asyncProperty(request, async (given) => {
        const bytes = handles[given.handle];
        const body = `{"raw_handle":{"b64":"${bytes.toString("base64")}"},"device_id":${given.device},"byte_size":${given.byteSize}}`;
        const { name } = given;
        const http = await overHttp("POST", regionTarget(name, "register"), body);
        const isThere = await overHttp("GET", regionTarget(name, "status"), "");
        expectAgreement(isThere, await over(triton, "CudaSharedMemoryStatus", { name }));
        const gone = await overHttp("POST", regionTarget(name, "unregister"), "");
        const message = {
          name,
          raw_handle: bytes,
          device_id: String(given.device),
          byte_size: String(given.byteSize),
        };
        const grpc = await over(triton, "CudaSharedMemoryRegister", message);
        expectAgreement(http, grpc, { hasWords: bytes.length === 64 });
        expectAgreement(gone, await over(triton, "CudaSharedMemoryUnregister", { name }));
      }),
      150,
    );
  },
  timeout,
);

const milliseconds = fc.oneof(
  fc.constantFrom(0, 1, 999, 1000, 1001, 604_800_000, 604_800_001, 2 ** 43),
  fc.integer({ min: 0, max: 2 ** 31 - 1 }),
);
const text = fc.oneof(
  fc.constantFrom(
    "",
    "a",
    "a/b.c_d-e",
    "é",
    "\0",
    "=",
    "x".repeat(63),
    "x".repeat(64),
    "x".repeat(255),
    "x".repeat(256),
  ),
  fc.string({ unit: "grapheme", maxLength: 6 }),
);
const labels = fc.oneof(
  fc.constant([] as [string, string][]),
  fc.uniqueArray(fc.tuple(text, text), { maxLength: 3, selector: ([key]) => key }),
  fc.constant(Array.from({ length: 33 }, (_, i): [string, string] => [`k${i}`, ""])),
);
const exporter = fc.record({
  pid: fc.constantFrom(0, 1, 2 ** 22, 2 ** 22 + 1, 2 ** 31 - 1),
  start_time: uint64,
  boot_id: fc.constantFrom("", "b", "x".repeat(64), "x".repeat(65), "\n"),
  pid_namespace: uint64,
});

test(
  "a register of ours comes to the same over both faces, whatever is in it",
  async () => {
    const uuid = fc.constantFrom("GPU-", "x", "x".repeat(5000), "\0\r\n", '"><script>');
    const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 4 });
    const request = fc.record({
      name: nameOfRegion,
      handle,
      device: fc.option(device, { nil: undefined, freq: 6 }),
      uuid: fc.option(uuid, { nil: undefined, freq: 2 }),
      byteSize: uint64,
      offset: optional(uint64),
      leaseMs: optional(milliseconds),
      labels,
      exporter: fc.option(exporter, { nil: undefined, freq: 2 }),
      replaces: fc.option(uint64, { nil: undefined, freq: 2 }),
      isDryRun: fc.boolean(),
    });
    await holds(
      fc.asyncProperty(request, async (given) => {
        const { name, leaseMs } = given;
        const bytes = handles[given.handle];
        const json = {
          raw_handle: { b64: bytes.toString("base64") },
          device_id: given.device,
          device_uuid: given.uuid,
          byte_size: given.byteSize,
          offset: given.offset,
          lease_seconds: leaseMs === undefined ? undefined : new LosslessNumber(seconds(leaseMs)),
          labels: Object.fromEntries(given.labels),
          exporter: given.exporter,
          replace_generation: given.replaces,
          dry_run: given.isDryRun,
        };
        const target = `/v1/regions/${encodeURIComponent(name)}`;
        const http = await overHttp("PUT", target, stringify(json) ?? "");
        const dropped = await overHttp("DELETE", target, "");
        const grpc = await over(registry, "Register", {
          name,
          raw_handle: bytes,
          device_id: given.device === undefined ? undefined : String(given.device),
          device_uuid: given.uuid,
          byte_size: String(given.byteSize),
          offset: String(given.offset ?? 0n),
          lease:
            leaseMs === undefined
              ? undefined
              : { seconds: String(Math.trunc(leaseMs / 1000)), nanos: (leaseMs % 1000) * 1_000_000 },
          labels: Object.fromEntries(given.labels),
          exporter: given.exporter && {
            ...given.exporter,
            start_time: String(given.exporter.start_time),
            pid_namespace: String(given.exporter.pid_namespace),
          },
          replace_generation: given.replaces === undefined ? undefined : String(given.replaces),
          dry_run: given.isDryRun,
        });
        expectAgreement(http, grpc, { hasWords: bytes.length === 64 });
        expectAgreement(dropped, await over(registry, "Unregister", { name }));
      }),
      250,
    );
  },
  timeout,
);

/** With as many decimals as it takes. */
function seconds(ms: number): string {
  return `${Math.trunc(ms / 1000)}.${String(ms % 1000).padStart(3, "0")}`;
}
