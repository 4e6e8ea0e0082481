import { expect, test } from "vitest";
import { thisHost } from "../../src/doctor/host.js";
import { kernelFinding } from "../../src/doctor/kernel.js";
import { pidNamespaceFinding } from "../../src/doctor/namespaces.js";
import { userFinding } from "../../src/doctor/user.js";

test("the machine that this runs on tells its kernel, user, namespaces and C library", () => {
  const host = thisHost({ NAME: "value" });
  expect(kernelFinding(host).facts.release).toMatch(/^\d+\.\d+/);
  expect(userFinding(host, "emulated").facts.uid).toBe(process.geteuid?.());
  expect(pidNamespaceFinding(host).facts.namespace).toMatch(/^pid:\[\d+\]$/);
  expect(host.glibcVersion).toMatch(/^2\.\d+$/);
  expect(host.architecture).toBe(process.arch);
  expect(host.env).toEqual({ NAME: "value" });
});

test("what is not there or not a file or not a link is null", () => {
  const host = thisHost({});
  expect([host.readText("/nonexistent"), host.readText("/proc"), host.readLink("/proc")]).toEqual([
    null,
    null,
    null,
  ]);
  expect([host.exists("/nonexistent"), host.exists("/proc")]).toEqual([false, true]);
});
