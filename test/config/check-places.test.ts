import { expect, test } from "vitest";
import { UsageError } from "../../src/config/usage-error.js";
import { loadConfig } from "../../src/config.js";

function problems(...args: string[]): readonly string[] {
  try {
    loadConfig(args, {});
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
}

const faces = ["http", "grpc"] as const;
const files = (face: string) => [`--${face}-server-cert=/c`, `--${face}-server-key=/k`];

test("with nothing given there is neither TLS nor a Unix socket", () => {
  expect(loadConfig([], {}).config).toMatchObject({
    ...{ httpUseSsl: false, httpUseSslMutual: false, grpcUseSsl: false, grpcUseSslMutual: false },
    ...{ httpServerCert: null, httpServerKey: null, httpRootCert: null },
    ...{ grpcServerCert: null, grpcServerKey: null, grpcRootCert: null },
    ...{ httpSocket: null, httpTcp: true, grpcSocket: null, grpcTcp: true },
    ...{ socketMode: null, socketGroup: null },
  });
});

test.each(faces)("TLS of %s as Triton's scripts have it is taken without a word", (face) => {
  for (const more of [[], [`--${face}-use-ssl-mutual=true`, `--${face}-root-cert=/r`]]) {
    expect(loadConfig([`--${face}-use-ssl=true`, ...files(face), ...more], {}).warnings).toEqual([]);
  }
});

test.each(faces)(
  "TLS of %s needs its files, and those of client certificates if it asks for them",
  (face) => {
    expect(problems(`--${face}-use-ssl`)).toEqual([
      `--${face}-use-ssl needs --${face}-server-cert`,
      `--${face}-use-ssl needs --${face}-server-key`,
    ]);
    expect(problems(`--${face}-use-ssl-mutual`, ...files(face))).toEqual([
      `--${face}-use-ssl-mutual needs --${face}-root-cert`,
    ]);
  },
);

test.each(faces)(
  "files for TLS of %s without TLS are a problem: nobody is served in plain who thinks otherwise",
  (face) => {
    expect(problems(...files(face), `--${face}-root-cert=/r`)).toEqual(
      ["server-cert", "server-key", "root-cert"].map(
        (name) => `--${face}-${name} is given without --${face}-use-ssl: add that, or drop the file`,
      ),
    );
    expect(problems(...files(face), `--allow-${face}=false`)).toEqual([]);
  },
);

test.each(faces)("roots for clients of %s that are asked for no certificate are warned about", (face) => {
  expect(loadConfig([`--${face}-use-ssl`, ...files(face), `--${face}-root-cert=/r`], {}).warnings).toEqual([
    `--${face}-root-cert has no effect without --${face}-use-ssl-mutual: clients are asked for no certificate`,
  ]);
});

test.each(faces)("%s without a port needs a socket, and no TLS", (face) => {
  expect(problems(`--${face}-tcp=false`)).toEqual([
    `--${face}-tcp=false leaves nothing to listen on: give a --${face}-socket`,
  ]);
  const socketOnly = [`--${face}-tcp=false`, `--${face}-socket=/run/s`];
  expect(problems(...socketOnly)).toEqual([]);
  expect(problems(...socketOnly, `--${face}-use-ssl`, ...files(face))).toEqual([
    `--${face}-use-ssl is for TCP, and --${face}-tcp=false leaves none: drop one of them`,
  ]);
});

test("ports of faces that listen on none do not clash", () => {
  const samePort = ["--http-port=9000", "--grpc-port=9000"];
  expect(problems(...samePort)).toHaveLength(1);
  expect(problems(...samePort, "--http-tcp=false", "--http-socket=/run/s")).toEqual([]);
});

test("one socket for both faces is a problem, unless one is off", () => {
  const both = ["--http-socket=/run/s", "--grpc-socket=/run/s"];
  expect(problems(...both)).toEqual([
    "--http-socket and --grpc-socket are both /run/s: give them different paths",
  ]);
  expect(problems(...both, "--allow-grpc=false")).toEqual([]);
});

test.each([
  ["0660", 0o660],
  ["660", 0o660],
  ["0000", 0],
  ["777", 0o777],
])("mode %s is read as octal", (text, mode) => {
  expect(loadConfig([`--socket-mode=${text}`], {}).config.socketMode).toBe(mode);
});

test.each(["0o660", "66", "1660", "01660", "0888", "rw-rw----", "-660"])("mode %s is refused", (text) => {
  expect(problems(`--socket-mode=${text}`)).toEqual([
    `--socket-mode: expected three octal digits as of chmod, such as 0660, got "${text}"`,
  ]);
});

test("a mode and a group have no effect without a socket, and the log says so", () => {
  const ofSockets = ["--socket-mode=0660", "--socket-group=video"];
  const warned = [
    "--socket-mode has no effect without --http-socket or --grpc-socket",
    "--socket-group has no effect without --http-socket or --grpc-socket",
  ];
  expect(loadConfig(ofSockets, {}).warnings).toEqual(warned);
  expect(loadConfig([...ofSockets, "--http-socket=/run/s", "--allow-http=false"], {}).warnings).toEqual(
    warned,
  );
  expect(loadConfig([...ofSockets, "--grpc-socket=/run/s"], {}).warnings).toEqual([]);
});

test("a group that the mode keeps out is a problem", () => {
  expect(problems("--socket-group=video", "--socket-mode=0600")).toEqual([
    "--socket-mode 0600 lets nobody of --socket-group connect: add 0020, or leave one out",
  ]);
  expect(problems("--socket-group=video", "--socket-mode=0620")).toEqual([]);
  expect(problems("--socket-group=video")).toEqual([]);
});

test.each(["run/http.sock", "unix:/run/http.sock", "/run/", `/run/${"x".repeat(103)}`])(
  "%s is no path of a socket",
  (path) => {
    expect(problems(`--http-socket=${path}`)).toEqual([
      `--http-socket: expected an absolute path of at most 107 bytes, in a folder of at most 97, such as /run/cudashm/http.sock, got "${path}"`,
    ]);
  },
);
