import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config.js";
import { root } from "./yaml.js";

const unit = readFileSync(join(root, "deploy", "systemd", "cudashm.service"), "utf8");
const settings = new Map(
  unit.split("\n").flatMap((line) => {
    const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value] as const];
  }),
);

function configOfUnit() {
  const [, command, ...args] = settings.get("ExecStart")?.split(" ") ?? [];
  expect(command).toBe("serve");
  return loadConfig(args, {});
}

test("the unit runs the service on NVIDIA's driver or none, by flags that there are", () => {
  const { config, warnings } = configOfUnit();
  expect({ driver: config.driver, warnings }).toEqual({ driver: "cuda", warnings: [] });
});

test("the unit finds the service where npm has installed it, in /usr/local or /usr", () => {
  expect(settings.get("ExecStart")?.split(" ")[0]).toBe("cudashm");
});

test("systemd waits longer than the service may take to stop", () => {
  expect(Number(settings.get("TimeoutStopSec"))).toBeGreaterThan(configOfUnit().config.exitTimeoutSecs);
});

test("the unit gives the service a user and no rights beyond it, and leaves it the GPU", () => {
  expect(Object.fromEntries(settings)).toMatchObject({
    User: "cudashm",
    NoNewPrivileges: "yes",
    CapabilityBoundingSet: "",
    ProtectSystem: "strict",
  });
  expect(settings.has("PrivateDevices")).toBe(false);
  expect(settings.has("MemoryDenyWriteExecute")).toBe(false);
});
