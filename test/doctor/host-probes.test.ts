import { describe, expect, test } from "vitest";
import { cLibraryFinding } from "../../src/doctor/c-library.js";
import { driverCapabilitiesFinding } from "../../src/doctor/driver-capabilities.js";
import { kernelFinding } from "../../src/doctor/kernel.js";
import { ipcNamespaceFinding, pidNamespaceFinding } from "../../src/doctor/namespaces.js";
import { platformFinding } from "../../src/doctor/platform.js";
import { userFinding } from "../../src/doctor/user.js";
import { type Fixture, fakeHost } from "./fake-host.js";

describe("platform", () => {
  const linux = { "/proc/version": "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)" };
  const wsl = { "/proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)" };
  const tegra = { "/etc/nv_tegra_release": "# R35 (release), REVISION: 4.1" };

  test.each<[string, Record<string, string>, string, string]>([
    ["plain Linux", linux, "OK", "linux"],
    ["WSL2 by its kernel's name", wsl, "WARN", "wsl2"],
    ["WSL2 by its GPU's file", { ...linux, "/dev/dxg": "" }, "WARN", "wsl2"],
    ["Jetson", { ...linux, ...tegra }, "WARN", "jetson"],
  ])("%s is told", (_, files, status, platform) => {
    const finding = platformFinding(fakeHost({ files }), "cuda");
    expect(finding).toMatchObject({ check: "platform", status, facts: { platform, architecture: "x64" } });
  });

  test("WSL2 and Jetson are no trouble to the emulated driver", () => {
    for (const files of [wsl, tegra]) {
      expect(platformFinding(fakeHost({ files }), "emulated")).toMatchObject({ status: "OK", advice: null });
    }
  });

  test.each<[string, Fixture, boolean]>([
    ["Docker", { files: { "/.dockerenv": "" } }, true],
    ["Podman", { files: { "/run/.containerenv": "" } }, true],
    ["Kubernetes", { env: { KUBERNETES_SERVICE_HOST: "10.0.0.1" } }, true],
    ["none", {}, false],
  ])("a container of %s is told", (_, fixture, container) => {
    const finding = platformFinding(fakeHost(fixture), "cuda");
    expect(finding.facts.container).toBe(container);
    expect(finding.text.includes("in a container")).toBe(container);
  });
});

describe("kernel", () => {
  test.each([
    ["6.18.44-fc-v782\n", "OK", true],
    ["5.3.0\n", "OK", true],
    ["5.2.21\n", "WARN", false],
    ["4.18.0-553.el8_10.x86_64\n", "WARN", false],
  ])("%j is %s", (text, status, pidfd) => {
    const finding = kernelFinding(fakeHost({ files: { "/proc/sys/kernel/osrelease": text } }));
    expect(finding).toMatchObject({ status, facts: { release: text.trim(), pidfd } });
  });

  test("one that cannot be read is a warning", () => {
    expect(kernelFinding(fakeHost())).toMatchObject({
      status: "WARN",
      facts: { release: null, pidfd: null },
    });
  });
});

describe("C library", () => {
  test("glibc is as it should be, with its version", () => {
    expect(cLibraryFinding(fakeHost({ glibcVersion: "2.31" }))).toMatchObject({
      status: "OK",
      text: "glibc 2.31",
      facts: { name: "glibc", version: "2.31" },
    });
  });

  test("musl is told by its loader, and an image with glibc recommended", () => {
    const maps = "7f0000000000-7f0000010000 r-xp 00000000 00:1f 12 /lib/ld-musl-x86_64.so.1\n";
    const finding = cLibraryFinding(fakeHost({ glibcVersion: null, files: { "/proc/self/maps": maps } }));
    expect(finding).toMatchObject({ status: "WARN", facts: { name: "musl", version: null } });
    expect(finding.text).toContain("musl");
    expect(finding.advice).toContain("Debian");
  });

  test("another one is told as what it is not", () => {
    const finding = cLibraryFinding(fakeHost({ glibcVersion: null }));
    expect(finding).toMatchObject({ status: "WARN", facts: { name: null } });
    expect(finding.text).toContain("not glibc");
  });
});

describe("namespaces", () => {
  const links = (pid: string, ipc: string) => ({ "/proc/self/ns/pid": pid, "/proc/self/ns/ipc": ipc });
  const host = links("pid:[4026531836]", "ipc:[4026531839]");
  const own = links("pid:[4026532198]", "ipc:[4026532196]");

  test("the host's are as they should be", () => {
    expect(pidNamespaceFinding(fakeHost({ links: host }))).toMatchObject({
      status: "OK",
      facts: { host: true },
    });
    expect(ipcNamespaceFinding(fakeHost({ links: host }))).toMatchObject({
      status: "OK",
      facts: { host: true },
    });
  });

  test("a PID namespace of its own is a warning that names error 201 and how to share one", () => {
    const finding = pidNamespaceFinding(fakeHost({ links: own }));
    expect(finding).toMatchObject({ status: "WARN", facts: { host: false, namespace: "pid:[4026532198]" } });
    expect(finding.text).toContain("201");
    expect(finding.advice).toMatch(/--pid=host.*hostPID/);
  });

  test("an IPC namespace of its own matters only to the multi-process service", () => {
    expect(ipcNamespaceFinding(fakeHost({ links: own })).status).toBe("OK");
    const env = { CUDA_MPS_PIPE_DIRECTORY: "/tmp/nvidia-mps" };
    const finding = ipcNamespaceFinding(fakeHost({ links: own, env }));
    expect(finding).toMatchObject({ status: "WARN", advice: expect.stringContaining("--ipc=host") });
    expect(ipcNamespaceFinding(fakeHost({ links: host, env })).status).toBe("OK");
  });

  test("those that cannot be read are warnings", () => {
    expect(pidNamespaceFinding(fakeHost())).toMatchObject({ status: "WARN", facts: { host: null } });
    expect(ipcNamespaceFinding(fakeHost())).toMatchObject({ status: "WARN", facts: { host: null } });
  });
});

describe("user", () => {
  const status = (uid: number, capabilities: string) => ({
    files: {
      "/proc/self/status": `Name:\tnode\nUid:\t7\t${uid}\t8\t9\nCapEff:\t${capabilities}\nCapBnd:\t0\n`,
    },
  });
  const all = "000001ffffffffff";
  // What Docker gives root: SYS_PTRACE, bit 19, is not in it.
  const docker = "00000000a80425fb";
  const onlyPtrace = "0000000000080000";

  test.each([
    [0, all, true, "exporters may run as any user"],
    [1000, onlyPtrace, true, "exporters may run as any user"],
    [0, docker, false, "exporters must run as uid 0 too"],
    [1000, "0000000000000000", false, "exporters must run as uid 1000 too"],
  ])("on the emulated driver, uid %i with capabilities %s: %s", (uid, capabilities, mayTrace, text) => {
    const finding = userFinding(fakeHost(status(uid, capabilities)), "emulated");
    expect(finding).toMatchObject({ status: "OK", facts: { uid, cap_sys_ptrace: mayTrace } });
    expect(finding.text).toContain(text);
  });

  test("on NVIDIA's driver nothing is said of exporters", () => {
    expect(userFinding(fakeHost(status(1000, docker)), "cuda").text).toBe("uid 1000");
  });

  test("one that cannot be read is a warning", () => {
    expect(userFinding(fakeHost(), "emulated")).toMatchObject({ status: "WARN", facts: { uid: null } });
  });
});

describe("NVIDIA_DRIVER_CAPABILITIES", () => {
  test.each([
    [undefined, "OK"],
    ["", "OK"],
    ["all", "OK"],
    ["compute,utility", "OK"],
    ["utility, compute", "OK"],
    ["utility", "WARN"],
    ["compute32", "WARN"],
  ])("%j is %s", (value, status) => {
    const env: Record<string, string> = value === undefined ? {} : { NVIDIA_DRIVER_CAPABILITIES: value };
    const finding = driverCapabilitiesFinding(fakeHost({ env }));
    expect(finding).toMatchObject({ status, facts: { NVIDIA_DRIVER_CAPABILITIES: value ?? null } });
    if (status === "WARN") expect(finding.advice).toContain("NVIDIA_DRIVER_CAPABILITIES=compute,utility");
  });
});
