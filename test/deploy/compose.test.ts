import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config.js";
import { describePython } from "../clients/python/environment.js";
import { readYaml, root } from "./yaml.js";

interface Service {
  readonly profiles: readonly string[];
  readonly image: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly pid: string;
  readonly ipc: string;
  readonly read_only: boolean;
  readonly cap_drop: readonly string[];
  readonly security_opt: readonly string[];
  readonly user?: string;
  readonly stop_grace_period: string;
  readonly volumes: readonly string[];
  readonly depends_on?: unknown;
  readonly deploy?: unknown;
}

interface ComposeFile {
  readonly services: Readonly<Record<"cudashm" | "emulated" | "demo", Service>>;
}

/** What the service makes of the command and the variables that a container gets. */
function configOf({ command, environment = {} }: Service) {
  const [name, ...args] = command;
  expect(name).toBe("serve");
  const env = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, String(value)]));
  return loadConfig(args, env);
}

describePython("docker-compose.yml", ["manifests"], ({ manifests: python }) => {
  const file = "docker-compose.yml";
  const [{ services }] = readYaml<ComposeFile>(python, file) as readonly [ComposeFile];
  const { cudashm, emulated, demo } = services;
  const all = Object.entries(services);

  test("is what the compose specification's schema allows", () => {
    const checker = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file];
    expect(execFileSync(python, checker, { cwd: root, encoding: "utf8" })).toContain("ok");
  });

  test.each([
    ["cudashm", cudashm],
    ["emulated", emulated],
  ])("the flags and variables of %s are the service's, with no warning", (_name, service) => {
    expect(configOf(service).warnings).toEqual([]);
  });

  test.each([
    ["cudashm", cudashm],
    ["emulated", emulated],
  ])(
    "every port of %s is published to 127.0.0.1 alone, and is one that listens on every address",
    (_name, service) => {
      const { config } = configOf(service);
      const listening = [
        { address: config.httpAddress, port: config.httpPort },
        { address: config.grpcAddress, port: config.grpcPort },
        { address: config.metricsAddress, port: config.metricsPort },
      ];
      expect(listening.map(({ address }) => address)).toEqual(["0.0.0.0", "0.0.0.0", "0.0.0.0"]);
      expect(service.ports).toEqual(listening.map(({ port }) => `127.0.0.1:${port}:${port}`));
    },
  );

  test.each([
    ["cudashm", cudashm],
    ["emulated", emulated],
  ])(
    "%s may be called by the names of the services alone, since a browser can reach its ports",
    (_name, service) => {
      expect(configOf(service).config.httpAllowedHost).toEqual(["cudashm", "emulated"]);
    },
  );

  test("the ports are those that the image names", () => {
    const exposed = /^EXPOSE (.+)$/m.exec(readFileSync(join(root, "Dockerfile"), "utf8"))?.[1]?.split(" ");
    expect(cudashm.ports?.map((port) => port.split(":").at(-1))).toEqual(exposed);
  });

  test("a GPU is reserved with what the driver needs, and its absence is an error", () => {
    expect(cudashm.deploy).toEqual({
      resources: {
        reservations: {
          devices: [{ driver: "nvidia", count: "all", capabilities: ["gpu", "compute", "utility"] }],
        },
      },
    });
    expect(configOf(cudashm).config.driver).toBe("cuda");
  });

  test("the emulated profile asks for no GPU", () => {
    expect(emulated.deploy).toBeUndefined();
    expect(configOf(emulated).config.driver).toBe("emulated");
  });

  test.each(all)("%s shares the host's PID and IPC namespaces", (_name, { pid, ipc }) => {
    expect({ pid, ipc }).toEqual({ pid: "host", ipc: "host" });
  });

  test.each(all)("%s has no rights beyond the image's user, and cannot write its root", (_name, service) => {
    const { read_only, cap_drop, security_opt, user } = service;
    expect({ read_only, cap_drop, security_opt, user }).toEqual({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      user: undefined,
    });
  });

  test("a stop waits longer than the service may take", () => {
    const seconds = Number(/^(\d+)s$/.exec(cudashm.stop_grace_period)?.[1]);
    expect(seconds).toBeGreaterThan(configOf(cudashm).config.exitTimeoutSecs);
  });

  test("`docker compose up` alone takes the GPU's profile, the demo brings the emulated service with it", () => {
    const chosen = /^COMPOSE_PROFILES=(.+)$/m.exec(readFileSync(join(root, ".env"), "utf8"))?.[1];
    const profiles = Object.fromEntries(all.map(([name, service]) => [name, service.profiles]));
    expect(chosen).toBe("gpu");
    expect(profiles).toEqual({ cudashm: ["gpu"], emulated: ["emulated", "demo"], demo: ["demo"] });
    expect(demo.depends_on).toEqual({ emulated: { condition: "service_healthy" } });
  });

  test("the demo asks the emulated service at its port, for contents that it serves", () => {
    const { config } = configOf(emulated);
    expect(demo.command).toEqual([`http://emulated:${config.httpPort}`]);
    expect(config.allowContents).toBe(true);
    expect(demo.image).toBe(emulated.image);
  });
});
