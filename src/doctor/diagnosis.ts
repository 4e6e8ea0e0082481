import { setTimeout } from "node:timers/promises";
import type { CudaDevice } from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import type { DriverPreference } from "../native/driver-choice.js";
import { NoGpuError } from "../native/driver-failure.js";
import { createCudaDriver, type SelectedDriver } from "../native/driver-selection.js";
import { cLibraryFinding } from "./c-library.js";
import { deviceFinding, readTraits } from "./device.js";
import { deviceOrderFinding, visibleDevicesFinding } from "./device-variables.js";
import { type DriverFailure, driverFinding } from "./driver.js";
import { driverCapabilitiesFinding } from "./driver-capabilities.js";
import { type Check, type Finding, problem } from "./finding.js";
import type { Host } from "./host.js";
import { ipcSelfTest, type SelfTestExporter } from "./ipc-self-test.js";
import { kernelFinding } from "./kernel.js";
import { ipcNamespaceFinding, pidNamespaceFinding } from "./namespaces.js";
import { platformFinding } from "./platform.js";
import { userFinding } from "./user.js";
import { Unanswered, within } from "./within.js";

export interface DiagnosisOptions {
  readonly host: Host;
  readonly preference: DriverPreference;
  /** Loaded in place of the library that the preference stands for. */
  readonly libraryPath: string | null;
  /** Starts the self-test's other process on a device and on the library chosen here; `signal` ends it. */
  startExporter(driver: SelectedDriver, ordinal: number, signal: AbortSignal): Promise<SelfTestExporter>;
  /** How long one answer of the driver may take. */
  readonly timeoutMs: number;
  /** Ends the diagnosis. */
  readonly signal: AbortSignal;
}

export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** A call into the driver never came back, and keeps this process from ending by itself. */
  readonly stuck: boolean;
}

/** Looks at the machine, the driver and every device. Rejects with the reason of `signal`, or a fault of ours. */
export async function diagnose(options: DiagnosisOptions): Promise<Diagnosis> {
  const { host, preference, libraryPath, timeoutMs, signal } = options;
  const warnings: string[] = [];
  const driver = createCudaDriver({
    preference,
    ...(libraryPath !== null && { libraryPath }),
    contextLingerMs: 0,
    warn: (text) => warnings.push(text),
  });
  const [devices, failure] = await within(timeoutMs, signal, () => driver.devices()).then(
    (list) => [list, null] as const,
    (error: unknown) => {
      signal.throwIfAborted();
      return [null, driverFailure(error)] as const;
    },
  );
  const { kind, description } = driver;
  const outcome = {
    preference,
    kind,
    libraryPath: description?.libraryPath ?? null,
    cudaVersion: description?.driverVersion ?? null,
    warnings,
    failure,
  };
  const findings: Finding[] = [
    platformFinding(host, kind),
    kernelFinding(host),
    cLibraryFinding(host),
    pidNamespaceFinding(host),
    ipcNamespaceFinding(host),
    userFinding(host, kind),
    driverFinding(outcome, host),
    driverCapabilitiesFinding(host),
    visibleDevicesFinding(host, devices),
    deviceOrderFinding(host, kind, devices),
  ];
  for (const device of devices ?? []) findings.push(...(await lookAtDevice(options, driver, device)));
  return { findings, stuck: failure?.why === "unanswered" || (await isStuck(driver)) };
}

/** A call counts as running for a moment after its answer. */
async function isStuck(driver: SelectedDriver): Promise<boolean> {
  for (let looks = 0; looks < 20; looks++) {
    if (driver.runningCalls().length === 0) return false;
    await setTimeout(5);
  }
  return true;
}

async function lookAtDevice(
  { startExporter, timeoutMs, signal }: DiagnosisOptions,
  driver: SelectedDriver,
  device: CudaDevice,
): Promise<Finding[]> {
  const { ordinal } = device;
  const looks: readonly [Check, (stop: AbortSignal) => Promise<Finding>][] = [
    ["device", async () => deviceFinding(device, await readTraits(driver, ordinal), driver.kind)],
    ["ipc_self_test", (stop) => ipcSelfTest(driver, ordinal, () => startExporter(driver, ordinal, stop))],
  ];
  const findings: Finding[] = [];
  for (const [check, look] of looks) {
    try {
      findings.push(await within(timeoutMs, signal, look));
    } catch (error) {
      signal.throwIfAborted();
      const text = `device ${ordinal}: ${error instanceof Error ? error.message : String(error)}`;
      findings.push(problem("FAIL", check, text, unansweredAdvice, { ordinal }));
      // What hangs once hangs again.
      if (error instanceof Unanswered) break;
    }
  }
  return findings;
}

const unansweredAdvice = "look for NVRM and Xid lines in the kernel's log (dmesg); reboot";

function driverFailure(error: unknown): DriverFailure {
  if (error instanceof Unanswered) {
    return { why: "unanswered", text: `the driver gave ${error.message}`, cudaCode: null };
  }
  // Whatever is neither is a fault of ours.
  if (!(error instanceof RegistryError)) throw error;
  const { message: text, driver } = error;
  if (error instanceof NoGpuError) return { why: "no_gpu", text, cudaCode: driver?.cudaCode ?? null };
  return driver === undefined
    ? { why: "unusable", text, cudaCode: null }
    : { why: "refused", text, cudaCode: driver.cudaCode };
}
