import { expect, test } from "vitest";
import { UnixSocketError } from "../src/listen/unix-socket.js";
import { formatAddress, ListenError } from "../src/listen-error.js";

const failure = (code: string) => Object.assign(new Error(`listen ${code}: what the system says`), { code });

test.each([
  ["EADDRINUSE", "the port is in use; stop what uses it or choose another with --grpc-port"],
  ["EACCES", "this user may not use the port; choose one above 1023 with --grpc-port"],
  ["EADDRNOTAVAIL", "this machine has no such address; choose another with --grpc-address"],
  ["EAFNOSUPPORT", "this machine has no such address; choose another with --grpc-address"],
  ["EINVAL", "this machine has no such address; choose another with --grpc-address"],
  ["ENOTFOUND", "the name cannot be resolved to an address; choose another with --grpc-address"],
  ["EAI_AGAIN", "the name cannot be resolved to an address; choose another with --grpc-address"],
  ["EMFILE", "listen EMFILE: what the system says"],
])("%s is told with what to do about it", (code, text) => {
  const cause = failure(code);
  const error = new ListenError("grpc", "127.0.0.1", 8001, cause);
  expect(error.message).toBe(`cannot listen on 127.0.0.1:8001 for grpc: ${text}`);
  expect(error.cause).toBe(cause);
});

test("a text that names another error's code is not taken for that error", () => {
  const error = new ListenError("http", "h", 1, new Error("EADDRINUSE is what this is not"));
  expect(error.message).toBe("cannot listen on h:1 for http: EADDRINUSE is what this is not");
});

test("a Unix socket is told by its path, with what is wrong with it", () => {
  const cause = new UnixSocketError("/run/h.sock", "another process listens there; stop it");
  const error = new ListenError("http", "127.0.0.1", 8000, cause);
  expect(error.message).toBe(
    "cannot listen on unix:/run/h.sock for http: another process listens there; stop it",
  );
});

test("an IPv6 address is told in brackets", () => {
  expect(formatAddress("::1", 8000)).toBe("[::1]:8000");
  expect(formatAddress("gpu-7.lan", 8000)).toBe("gpu-7.lan:8000");
});
