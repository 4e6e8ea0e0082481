import { expect, test } from "vitest";
import { UsageError } from "../../src/config/usage-error.js";
import { type Config, loadConfig } from "../../src/config.js";

const load = (args: string[], env: Record<string, string> = {}): Config => loadConfig(args, env).config;

function problems(args: string[], env: Record<string, string> = {}): readonly string[] {
  try {
    load(args, env);
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
}

test("with nothing given, nothing is restricted or limited", () => {
  expect(load([])).toMatchObject({
    tokenFile: null,
    httpRestrictedApi: [],
    grpcRestrictedProtocol: [],
    httpAllowedOrigin: [],
    httpAllowedHost: [],
    maxRegions: null,
    maxDeviceBytes: null,
    maxOwnerBytes: null,
    maxRequestsInFlight: null,
    httpMaxConnections: null,
    grpcMaxConnections: null,
  });
});

test("a restriction names categories, a key and a value, which may have colons and equals signs", () => {
  expect(
    load([
      "--http-restricted-api=shared-memory,model-config:admin-key=a:b=c",
      "--http-restricted-api",
      "health:k=v",
    ]).httpRestrictedApi,
  ).toEqual([
    { categories: ["shared-memory", "model-config"], key: "admin-key", value: "a:b=c" },
    { categories: ["health"], key: "k", value: "v" },
  ]);
});

test("a variable has several with blanks in between, and the command line replaces them all", () => {
  const env = { CUDASHM_HTTP_ALLOWED_ORIGIN: "http://a.example https://b.example:8443\nhttp://[::1]:1" };
  expect(load([], env).httpAllowedOrigin).toEqual([
    "http://a.example",
    "https://b.example:8443",
    "http://[::1]:1",
  ]);
  expect(load(["--http-allowed-origin=http://c.example"], env).httpAllowedOrigin).toEqual([
    "http://c.example",
  ]);
});

test.each([
  "shared-memory",
  "shared-memory:k",
  "shared-memory:k=",
  "shared-memory:=v",
  ":k=v",
  "shm:k=v",
  "shared-memory,shared-memory:k=v",
  "shared-memory,:k=v",
  "shared-memory:a key=v",
  "shared-memory:k=v w",
  "shared-memory:k=é",
])("the restriction %j is refused, and its secret is not shown", (text) => {
  const [problem, ...others] = problems([`--http-restricted-api=${text}`]);
  expect(others).toEqual([]);
  expect(problem).toMatch(/^--http-restricted-api: expected categories .*, got something else$/);
});

test("a key that gRPC would read as base64 is refused for gRPC", () => {
  expect(problems(["--grpc-restricted-protocol=health:key-bin=v"])).toHaveLength(1);
  expect(problems(["--grpc-restricted-protocol=health:a key=v"])).toHaveLength(1);
  expect(load(["--grpc-restricted-protocol=health:Key=v"]).grpcRestrictedProtocol).toHaveLength(1);
});

test("a category restricted twice is told for each face", () => {
  const args = ["health,metadata:a=1", "health:b=2"].flatMap((text) => [
    `--http-restricted-api=${text}`,
    `--grpc-restricted-protocol=${text}`,
  ]);
  expect(problems(args)).toEqual([
    "--http-restricted-api restricts health twice: give each category one key",
    "--grpc-restricted-protocol restricts health twice: give each category one key",
  ]);
});

test.each([
  "example.com",
  "http://example.com/",
  "http://EXAMPLE.com",
  "http://a:80",
  "null",
  "*",
  "file://x",
])("%j is no origin that a browser sends for a page that could be let in", (text) => {
  expect(problems([`--http-allowed-origin=${text}`])).toHaveLength(1);
});

test("a host may have a port, and is no URL", () => {
  expect(load(["--http-allowed-host=gpu-7.lan gpu:8000"]).httpAllowedHost).toEqual(["gpu-7.lan", "gpu:8000"]);
  expect(problems(["--http-allowed-host=http://gpu"])).toHaveLength(1);
});

test("limits are at least one and exact up to what a number can hold", () => {
  expect(problems(["--max-regions=0"])).toHaveLength(1);
  expect(load(["--max-device-bytes=9007199254740991"]).maxDeviceBytes).toBe(Number.MAX_SAFE_INTEGER);
  expect(problems(["--max-owner-bytes=9007199254740992"])).toHaveLength(1);
});
