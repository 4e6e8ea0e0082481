import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { loadConfig } from "../src/config.js";
import { ListenError } from "../src/listen-error.js";
import { createLog } from "../src/log.js";
import { startService } from "../src/service.js";

function capture() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog("debug", { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, messages: () => lines.map((line) => String(line.msg)) };
}

const config = (...args: string[]) =>
  loadConfig(["--driver=emulated", "--http-port=0", "--grpc-port=0", "--metrics-port=0", ...args], {}).config;

async function listenOn(port: number) {
  const listener = createServer().listen(port, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => listener.close(() => resolve())),
  };
}

async function freePort(): Promise<number> {
  await using listener = await listenOn(0);
  return listener.port;
}

test.each([
  ["http", "grpc"],
  ["grpc", "http"],
  ["grpc", "metrics"],
  ["metrics", "http"],
])("when %s cannot listen, %s is closed again and nothing is announced", async (failing, other) => {
  await using busy = await listenOn(0);
  const port = await freePort();
  const { log, messages } = capture();
  const start = startService(config(`--${failing}-port=${busy.port}`, `--${other}-port=${port}`), { log });
  await expect(start).rejects.toThrow(ListenError);
  await expect(start).rejects.toThrow(
    `cannot listen on 127.0.0.1:${busy.port} for ${failing}: the port is in use`,
  );
  expect(messages().filter((message) => message.startsWith("Started"))).toEqual([]);
  // Free again: nobody listens there.
  await using _again = await listenOn(port);
});

test.each(
  ["http", "grpc", "metrics"].flatMap((face) => [
    [face, "203.0.113.7", "this machine has no such address"],
    [face, "fe80::1", "this machine has no such address"],
    [face, "a..b", "the name cannot be resolved to an address"],
  ]),
)("when %s is to listen on %s, the error says so", async (face, host, why) => {
  const start = startService(config(`--${face}-address=${host}`), { log: capture().log });
  await expect(start).rejects.toThrow(
    new RegExp(`for ${face}: ${why}; choose another with --${face}-address$`),
  );
});

test.each([
  ["http", ["grpc", "metrics"]],
  ["grpc", ["http", "metrics"]],
  ["metrics", ["http", "grpc"]],
] as const)("with %s off, the other two listen", async (off, on) => {
  const { log, messages } = capture();
  await using service = await startService(config(`--allow-${off}=false`), { log });
  expect(service[off]).toBeNull();
  for (const face of on) expect(service[face]?.port).toBeGreaterThan(0);
  expect(messages().filter((message) => message.startsWith("Started"))).toHaveLength(2);
});

test("stopping twice is stopping once, and frees every port", async () => {
  const { log, messages } = capture();
  const service = await startService(config(), { log });
  await Promise.all([service.stop(), service.stop(), service[Symbol.asyncDispose]()]);
  expect(messages().filter((message) => message === "stopped")).toHaveLength(1);
  await using _http = await listenOn(service.http?.port ?? 0);
  await using _grpc = await listenOn(service.grpc?.port ?? 0);
  await using _metrics = await listenOn(service.metrics?.port ?? 0);
});

test("two services with one configuration of free ports live side by side", async () => {
  const { log } = capture();
  await using first = await startService(config(), { log });
  await using second = await startService(config(), { log });
  const ready = async (port: number | undefined) =>
    (await fetch(`http://127.0.0.1:${port}/v2/health/live`)).status;
  expect([await ready(first.http?.port), await ready(second.http?.port)]).toEqual([200, 200]);
});

test("an IPv6 address is told with its brackets", async () => {
  const { log, messages } = capture();
  await using service = await startService(config("--http-address=::1", "--allow-grpc=false"), { log });
  expect(messages()).toContain(`Started HTTPService at [::1]:${service.http?.port}`);
  expect((await fetch(`http://[::1]:${service.http?.port}/v2/health/live`)).status).toBe(200);
});

test("GET /v2 tells the configured id, the version and the driver", async () => {
  const { log } = capture();
  await using service = await startService(config("--id=gpu-7"), { log });
  const url = `http://127.0.0.1:${service.http?.port}`;
  const metadata = (await (await fetch(`${url}/v2`)).json()) as Record<string, unknown>;
  expect(metadata).toMatchObject({
    name: "gpu-7",
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    extensions: ["cuda_shared_memory"],
  });
});

test("contents are served, and bodies limited, as configured", async () => {
  const { log } = capture();
  const limits = ["--allow-contents", "--http-max-input-size=10"];
  await using closed = await startService(config("--allow-grpc=false"), { log });
  await using open = await startService(config("--allow-grpc=false", ...limits), { log });
  const call = async (service: typeof open, method: string, path: string, body: string | null = null) => {
    const answer = await fetch(`http://127.0.0.1:${service.http?.port}${path}`, { method, body });
    return [answer.status, ((await answer.json()) as { error: string }).error];
  };
  expect(await call(closed, "GET", "/v1/regions/r/contents")).toEqual([
    403,
    expect.stringContaining("--allow-contents"),
  ]);
  expect(await call(open, "GET", "/v1/regions/r/contents")).toEqual([
    404,
    "Unable to find cuda shared memory region: 'r'",
  ]);
  const register = "/v2/cudasharedmemory/region/r/register";
  expect(await call(closed, "POST", register, "x".repeat(11))).toEqual([
    400,
    expect.stringMatching(/^failed to parse/),
  ]);
  expect(await call(open, "POST", register, "x".repeat(11))).toEqual([
    400,
    expect.stringMatching(
      /^request JSON size of 11 bytes exceeds the maximum allowed input size of 10 bytes/,
    ),
  ]);
});
