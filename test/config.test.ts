import fc from "fast-check";
import { expect, test } from "vitest";
import { UsageError } from "../src/config/usage-error.js";
import { configRows, loadConfig, serveOptions } from "../src/config.js";

function problems(args: string[], env: Record<string, string> = {}): readonly string[] {
  try {
    loadConfig(args, env);
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
}

const load = (args: string[], env: Record<string, string> = {}) => loadConfig(args, env).config;

test("with nothing given, serves both faces on loopback at Triton's ports and lets clients register", () => {
  expect(load([])).toMatchObject({
    allowHttp: true,
    httpAddress: "127.0.0.1",
    httpPort: 8000,
    httpMaxInputSize: 1_048_576,
    allowContents: false,
    allowDoctor: false,
    allowGrpc: true,
    grpcAddress: "127.0.0.1",
    grpcPort: 8001,
    grpcKeepaliveTime: 300_000,
    grpcKeepaliveTimeout: 20_000,
    allowMetrics: true,
    metricsAddress: "127.0.0.1",
    metricsPort: 8002,
    driver: "auto",
    driverLibrary: null,
    contextLingerSecs: 30,
    allowClientShm: true,
    exitTimeoutSecs: 30,
  });
});

test("a value may stand behind a blank or an equals sign", () => {
  expect(load(["--http-port=1234", "--grpc-port", "1235"])).toMatchObject({ httpPort: 1234, grpcPort: 1235 });
});

test("a value may itself hold an equals sign or begin with a dash", () => {
  expect(load(["--id=a=b"]).id).toBe("a=b");
  expect(load(["--id", "-x"]).id).toBe("-x");
});

test.each([
  [["--allow-http"], true],
  [["--allow-http=false"], false],
  [["--allow-http", "false"], false],
  [["--allow-http", "0"], false],
  [["--allow-http=1"], true],
  [["--allow-http=TRUE"], true],
  [["--allow-http=false", "--allow-http"], true],
])("%j reads as allow-http %s", (args, expected) => {
  expect(load(args).allowHttp).toBe(expected);
});

test("a switch without a value leaves the next option alone", () => {
  expect(load(["--allow-contents", "--http-port", "1"])).toMatchObject({ allowContents: true, httpPort: 1 });
});

test("what follows a switch is its value, and told as such where it is none", () => {
  expect(problems(["--allow-http", "maybe"])).toEqual([
    '--allow-http: expected true, false, 1 or 0, got "maybe"',
  ]);
});

test("the command line beats the environment, the environment beats the default", () => {
  const env = { CUDASHM_HTTP_PORT: "1", CUDASHM_GRPC_PORT: "2", CUDASHM_ALLOW_CLIENT_SHM: "false" };
  expect(load(["--http-port=3"], env)).toMatchObject({ httpPort: 3, grpcPort: 2, allowClientShm: false });
});

test("an empty variable counts as unset", () => {
  expect(load([], { CUDASHM_HTTP_PORT: "" }).httpPort).toBe(8000);
});

test("the configuration cannot be changed", () => {
  expect(Object.isFrozen(load([]))).toBe(true);
});

test("every problem is told at once, each with what was expected", () => {
  expect(
    problems(["--http-prot", "8000", "--grpc-port=70000", "extra", "--driver=rocm", "--id"], {
      CUDASHM_EXIT_TIMEOUT_SECS: "soon",
    }),
  ).toEqual([
    'CUDASHM_EXIT_TIMEOUT_SECS: expected a whole number from 1 to 2000000, got "soon"',
    "unknown option --http-prot; did you mean --http-port?",
    '--grpc-port: expected a port from 0 to 65535, got "70000"',
    'unexpected argument "extra"',
    '--driver: expected one of auto, cuda, emulated, got "rocm"',
    "--id: expected some text, got nothing",
  ]);
});

test("a wrong variable is a problem even where a flag beats it", () => {
  expect(problems(["--http-port=1"], { CUDASHM_HTTP_PORT: "x" })).toHaveLength(1);
});

test.each(["65536", "-1", "1.5", "1e3", " 1", "0x10", "", "99999999999999999999"])(
  "port %j is refused",
  (text) => {
    expect(problems([`--http-port=${text}`])).toEqual([
      `--http-port: expected a port from 0 to 65535, got ${JSON.stringify(text)}`,
    ]);
  },
);

test("a keepalive time beyond what a timer can hold is refused", () => {
  expect(problems(["--grpc-keepalive-time=2147483648"])).toHaveLength(1);
  expect(load(["--grpc-keepalive-time=2147483647"]).grpcKeepaliveTime).toBe(2_147_483_647);
});

test.each(["127.0.0.1", "0.0.0.0", "::", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "localhost", "gpu-7.lan"])(
  "address %s is taken as it is",
  (host) => {
    expect(load([`--http-address=${host}`]).httpAddress).toBe(host);
  },
);

test.each(["[::1]", "127.0.0.1:8000", "http://localhost", "a b", "unix:/x"])(
  "address %j is refused",
  (host) => {
    expect(problems([`--http-address=${host}`])).toHaveLength(1);
  },
);

test("a number of nothing like an option gets no suggestion", () => {
  expect(problems(["--zzzzzzzzzzzz"])).toEqual(["unknown option --zzzzzzzzzzzz"]);
  expect(problems(["-p", "8000"])).toEqual([expect.stringMatching(/^unknown option -p/)]);
});

test("both faces off is a problem", () => {
  expect(problems(["--allow-http=false", "--allow-grpc=false"])).toEqual([
    "--allow-http and --allow-grpc are both false: nothing would be served; leave one of them on",
  ]);
});

test.each([
  ["http", "8002"],
  ["grpc", "8002"],
])("%s on the port of the metrics (%s) is a problem, unless they are off", (face, port) => {
  expect(problems([`--${face}-port=${port}`])).toEqual([
    `--${face}-port and --metrics-port are both ${port}: give them different ports`,
  ]);
  expect(problems([`--${face}-port=${port}`, "--allow-metrics=false"])).toEqual([]);
});

test("both faces on one port is a problem, unless the system chooses or one is off", () => {
  expect(problems(["--http-port=9000", "--grpc-port=9000"])).toEqual([
    "--http-port and --grpc-port are both 9000: give them different ports",
  ]);
  expect(problems(["--http-port=0", "--grpc-port=0"])).toEqual([]);
  expect(problems(["--http-port=9000", "--grpc-port=9000", "--allow-grpc=0"])).toEqual([]);
  expect(problems(["--http-port=9000", "--grpc-port=9000", "--grpc-address=127.0.0.2"])).toEqual([]);
});

test("a flag of Triton's that does nothing here is accepted with a warning, and only when set", () => {
  expect(loadConfig([], {}).warnings).toEqual([]);
  expect(loadConfig(["--grpc-http2-max-ping-strikes=5"], {}).warnings).toEqual([
    "--grpc-http2-max-ping-strikes has no effect: the gRPC library has no such setting, no client is sent away for its pings",
  ]);
  expect(loadConfig([], { CUDASHM_GRPC_KEEPALIVE_PERMIT_WITHOUT_CALLS: "true" }).warnings).toHaveLength(1);
});

test("a mistyped variable is warned about; those of Kubernetes and of the emulated driver are not", () => {
  const env = {
    CUDASHM_HTTP_PROT: "1",
    CUDASHM_SERVICE_HOST: "10.0.0.1",
    CUDASHM_PORT: "tcp://10.0.0.1:8000",
    CUDASHM_PORT_8000_TCP: "tcp://10.0.0.1:8000",
    CUDASHM_EMULATED_FAULTS: "",
    PATH: "/bin",
  };
  expect(loadConfig([], env).warnings).toEqual([
    "CUDASHM_HTTP_PROT is no variable of this service and has no effect",
  ]);
});

test("every option has its own flag, a variable that sets it, and a default it accepts itself", () => {
  const rows = configRows();
  expect(new Set(rows.map((row) => row.env)).size).toBe(rows.length);
  for (const [key, option] of Object.entries(serveOptions)) {
    // Nothing stands for these: they are left out.
    if (option.default === null || Array.isArray(option.default)) continue;
    const text = String(option.default);
    expect(option.kind.parse(text)).toBe(option.default);
    const env = { [`CUDASHM_${option.flag.toUpperCase().replaceAll("-", "_")}`]: text };
    expect(load([], env)[key as keyof typeof serveOptions]).toBe(option.default);
  }
});

test("any arguments at all yield a configuration or a list of problems, never another error", () => {
  const words = fc.constantFrom(
    "--http-port",
    "--allow-http",
    "--driver",
    "=",
    "0",
    "true",
    "-",
    "--",
    "--=",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(words, fc.string())), (args) => {
      expect(Array.isArray(problems(args))).toBe(true);
    }),
  );
});
