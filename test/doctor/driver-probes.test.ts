import { describe, expect, test } from "vitest";
import type { CudaDevice } from "../../src/core/driver.js";
import { type DeviceTraits, deviceFinding } from "../../src/doctor/device.js";
import { deviceOrderFinding, visibleDevicesFinding } from "../../src/doctor/device-variables.js";
import { type DriverFailure, type DriverOutcome, driverFinding } from "../../src/doctor/driver.js";
import { type Fixture, fakeHost } from "./fake-host.js";

const device = (ordinal: number, uuid = `GPU-0000000${ordinal}`): CudaDevice => ({
  ordinal,
  uuid,
  pciBusId: `0000:0${ordinal}:00.0`,
  name: "NVIDIA H200",
  totalBytes: 150_754_820_096n,
});

describe("driver", () => {
  const usable: DriverOutcome = {
    preference: "auto",
    kind: "cuda",
    libraryPath: "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    cudaVersion: "12.8",
    warnings: [],
    failure: null,
  };
  const failed = (
    failure: DriverFailure,
    preference: DriverOutcome["preference"] = "cuda",
  ): DriverOutcome => ({
    preference,
    kind: null,
    libraryPath: null,
    cudaVersion: null,
    warnings: [],
    failure,
  });
  const missing: DriverFailure = { why: "no_gpu", text: "no CUDA driver: libcuda.so.1", cudaCode: null };
  const noDevice: DriverFailure = { why: "no_gpu", text: "CUDA_ERROR_NO_DEVICE (100)", cudaCode: 100 };
  const refused = (cudaCode: number): DriverFailure => ({ why: "refused", text: `(${cudaCode})`, cudaCode });

  test.each([
    ["NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024", "550.54.15"],
    ["NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build  (dvs-builder)", "570.86"],
  ])("NVIDIA's is told with its path, version and kernel module: %s", (line, version) => {
    const files = {
      "/proc/driver/nvidia/version": `NVRM version: ${line}\nGCC version:  gcc version 12.2.0\n`,
    };
    expect(driverFinding(usable, fakeHost({ files }))).toEqual({
      check: "driver",
      status: "OK",
      text: `NVIDIA's driver: CUDA 12.8, kernel module ${version}, from /usr/lib/x86_64-linux-gnu/libcuda.so.1`,
      advice: null,
      facts: {
        kind: "cuda",
        library_path: "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        cuda_version: "12.8",
        kernel_module_version: version,
      },
    });
  });

  test("the emulated one that was asked for is as it should be, and says where its memory is", () => {
    const outcome: DriverOutcome = { ...usable, preference: "emulated", kind: "emulated" };
    const finding = driverFinding(outcome, fakeHost());
    expect(finding).toMatchObject({ status: "OK", facts: { kind: "emulated", kernel_module_version: null } });
    expect(finding.text).toContain("memory on the host");
  });

  test("falling back to the emulated one is a warning, with how to mean it", () => {
    const warnings = ["using the emulated driver, with memory on the host: no CUDA driver"];
    const finding = driverFinding(
      { ...usable, kind: "emulated", libraryPath: "/p/libcuda.so.1", warnings },
      fakeHost(),
    );
    expect(finding).toMatchObject({ status: "WARN", text: warnings[0] });
    expect(finding.advice).toMatch(/^install NVIDIA's driver.*--driver emulated$/);
  });

  test("finding the emulated one by LD_LIBRARY_PATH is a warning that names the folder", () => {
    const outcome: DriverOutcome = {
      ...usable,
      kind: "emulated",
      libraryPath: "/opt/emulated/libcuda.so.1",
      warnings: ["/opt/emulated/libcuda.so.1 is the emulated driver"],
    };
    const finding = driverFinding(outcome, fakeHost({ env: { LD_LIBRARY_PATH: "/lib:/opt/emulated/" } }));
    expect(finding).toMatchObject({ status: "WARN" });
    expect(finding.advice).toMatch(/^take \/opt\/emulated out of LD_LIBRARY_PATH; .*--driver emulated$/);
  });

  test.each<[string, DriverOutcome, Fixture, RegExp]>([
    ["a library that is missing", failed(missing), {}, /^install NVIDIA's driver/],
    [
      "a library that is missing beside a GPU",
      failed(missing, "auto"),
      { files: { "/dev/nvidiactl": "", "/dev/nvidia3": "" } },
      /NVIDIA_DRIVER_CAPABILITIES=compute,utility/,
    ],
    [
      "a container with the driver and without a GPU",
      failed(noDevice),
      { files: { "/dev/nvidiactl": "" } },
      /give the container one \(`--gpus all`\)/,
    ],
    [
      "devices that are hidden",
      failed(noDevice),
      { env: { CUDA_VISIBLE_DEVICES: "-1" }, files: { "/dev/nvidiactl": "", "/dev/nvidia0": "" } },
      /CUDA_VISIBLE_DEVICES=-1/,
    ],
    [
      "the toolkit's stub",
      failed(refused(34)),
      { env: { LD_LIBRARY_PATH: "/usr/local/cuda/lib64:/usr/local/cuda/lib64/stubs/" } },
      /take the CUDA toolkit's \/usr\/local\/cuda\/lib64\/stubs out of LD_LIBRARY_PATH/,
    ],
    ["a stub that is found otherwise", failed(refused(34)), {}, /toolkit's folder of stubs/],
    ["a driver that does not fit its kernel module", failed(refused(803)), {}, /nvidia-smi.*reboot/],
    [
      "a library of another kind",
      failed({ why: "unusable", text: "has no function cuInit", cudaCode: null }),
      {},
      /reason/,
    ],
    [
      "a driver that hangs",
      failed({ why: "unanswered", text: "no answer", cudaCode: null }, "emulated"),
      {},
      /Xid/,
    ],
    ["an emulated driver that fails", failed(refused(1), "emulated"), {}, /needs no GPU/],
  ])("%s is a failure, with what to do", (_, outcome, fixture, advice) => {
    const finding = driverFinding(outcome, fakeHost(fixture));
    expect(finding).toMatchObject({ status: "FAIL", text: outcome.failure?.text, facts: { kind: null } });
    expect(finding.advice).toMatch(advice);
  });
});

describe("CUDA_VISIBLE_DEVICES", () => {
  test.each<[string | undefined, number | null, string, RegExp]>([
    [undefined, 2, "OK", /is not set/],
    ["1,0", 2, "OK", /^CUDA_VISIBLE_DEVICES=1,0: device_id is a place in this list/],
    ["0,9,1", 1, "WARN", /1 of the 3 devices/],
    ["-1", null, "OK", /^CUDA_VISIBLE_DEVICES=-1$/],
  ])("%j with %j devices is %s", (value, count, status, text) => {
    const env: Record<string, string> = value === undefined ? {} : { CUDA_VISIBLE_DEVICES: value };
    const devices = count === null ? null : Array.from({ length: count }, (_, ordinal) => device(ordinal));
    const finding = visibleDevicesFinding(fakeHost({ env }), devices);
    expect(finding).toMatchObject({ status, facts: { CUDA_VISIBLE_DEVICES: value ?? null } });
    expect(finding.text).toMatch(text);
  });
});

describe("CUDA_DEVICE_ORDER", () => {
  test.each<[string | undefined, "cuda" | "emulated", number, string]>([
    [undefined, "cuda", 1, "OK"],
    [undefined, "cuda", 2, "WARN"],
    [undefined, "emulated", 2, "OK"],
    ["FASTEST_FIRST", "cuda", 2, "WARN"],
    ["PCI_BUS_ID", "cuda", 2, "OK"],
  ])("%j on the %s driver with %i devices is %s", (value, kind, count, status) => {
    const env: Record<string, string> = value === undefined ? {} : { CUDA_DEVICE_ORDER: value };
    const devices = Array.from({ length: count }, (_, ordinal) => device(ordinal));
    const finding = deviceOrderFinding(fakeHost({ env }), kind, devices);
    expect(finding).toMatchObject({ status, facts: { CUDA_DEVICE_ORDER: value ?? null } });
    if (status === "WARN") expect(finding.advice).toContain("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  });
});

describe("device", () => {
  const traits: DeviceTraits = {
    computeMode: 0,
    integrated: 0,
    unifiedAddressing: 1,
    ipcEvents: 1,
    freeBytes: 150_000_000_000n,
  };

  test("a usable one is told with all that names it", () => {
    expect(deviceFinding(device(0), traits, "cuda")).toEqual({
      check: "device",
      status: "OK",
      text: "device 0: NVIDIA H200, GPU-00000000, PCI 0000:00:00.0, 143051 of 143771 MiB free, compute mode default",
      advice: null,
      facts: {
        ordinal: 0,
        name: "NVIDIA H200",
        uuid: "GPU-00000000",
        pci_bus_id: "0000:00:00.0",
        total_bytes: 150_754_820_096,
        free_bytes: 150_000_000_000,
        compute_mode: "default",
        mig: false,
        integrated: false,
        unified_addressing: true,
        ipc_events: true,
      },
    });
  });

  test("what the driver does not tell is null, and no problem", () => {
    const unknown = {
      computeMode: null,
      integrated: null,
      unifiedAddressing: null,
      ipcEvents: null,
      freeBytes: null,
    };
    const finding = deviceFinding(device(0), unknown, "cuda");
    expect(finding).toMatchObject({
      status: "OK",
      facts: { compute_mode: null, integrated: null, ipc_events: null, free_bytes: null },
    });
    expect(finding.text).toContain("143771 MiB, compute mode unknown");
  });

  test("a MIG instance is told, and with whom it can share", () => {
    const finding = deviceFinding(device(0, "MIG-00000000"), traits, "cuda");
    expect(finding).toMatchObject({ status: "OK", facts: { mig: true } });
    expect(finding.text).toContain("only processes on the same instance");
  });

  test.each<[string, Partial<DeviceTraits>, string, RegExp]>([
    ["compute mode prohibited", { computeMode: 2 }, "FAIL", /^nvidia-smi -i 0000:00:00\.0 -c DEFAULT$/],
    ["compute mode exclusive process", { computeMode: 3 }, "WARN", /-c DEFAULT, or use the multi-process/],
    ["no unified addressing", { unifiedAddressing: 0 }, "FAIL", /unified addressing/],
    ["an integrated GPU", { integrated: 1 }, "WARN", /memory of its own/],
    ["no IPC of events", { ipcEvents: 0 }, "WARN", /self-test/],
    ["two at once", { computeMode: 3, unifiedAddressing: 0 }, "FAIL", /-c DEFAULT.*; .*unified addressing/],
  ])("%s is told, with what to do", (_, changed, status, advice) => {
    const finding = deviceFinding(device(0), { ...traits, ...changed }, "cuda");
    expect(finding.status).toBe(status);
    expect(finding.advice).toMatch(advice);
  });
});
