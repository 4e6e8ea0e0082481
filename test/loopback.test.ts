import { expect, test } from "vitest";
import { isLoopback } from "../src/loopback.js";

test.each(["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST", "localhost."])(
  "%s is this machine alone",
  (host) => {
    expect(isLoopback(host)).toBe(true);
  },
);

test.each([
  "0.0.0.0",
  "::",
  "128.0.0.1",
  "10.0.0.1",
  "fe80::1%lo",
  "::ffff:10.0.0.1",
  "localhost.lan",
  "gpu-7",
])("%s is not", (host) => {
  expect(isLoopback(host)).toBe(false);
});
