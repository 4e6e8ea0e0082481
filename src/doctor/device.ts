import type { CudaDevice, DriverKind } from "../core/driver.js";
import type { SelectedDriver } from "../native/driver-selection.js";
import { type Finding, ok, problem, worst } from "./finding.js";

/** What the driver tells of a device beyond its names; null for what it cannot tell. */
export interface DeviceTraits {
  /** 0 default, 2 prohibited, 1 and 3 exclusive, as CUDA numbers them. */
  readonly computeMode: number | null;
  readonly integrated: number | null;
  readonly unifiedAddressing: number | null;
  readonly ipcEvents: number | null;
  readonly freeBytes: bigint | null;
}

// Of CUdevice_attribute, which numbers them for good.
const attributes = { integrated: 18, computeMode: 20, unifiedAddressing: 41, ipcEvents: 125 };

/** Asks the driver. Makes a context on the device, for its free memory. Rejects where an attribute is refused. */
export async function readTraits(driver: SelectedDriver, ordinal: number): Promise<DeviceTraits> {
  const [computeMode, integrated, unifiedAddressing, ipcEvents] = await Promise.all([
    driver.attribute(ordinal, attributes.computeMode),
    driver.attribute(ordinal, attributes.integrated),
    driver.attribute(ordinal, attributes.unifiedAddressing),
    driver.attribute(ordinal, attributes.ipcEvents),
  ]);
  // A device that takes no context is told by its mode, or by the self-test.
  const freeBytes = await driver.memoryInfo(ordinal).then(
    (memory) => memory.freeBytes,
    () => null,
  );
  return { computeMode, integrated, unifiedAddressing, ipcEvents, freeBytes };
}

const prohibited = 2;
const modeNames = ["default", "exclusive", "prohibited", "exclusive process"];

/** One device, and what of it stands in the way of sharing its memory. */
export function deviceFinding(device: CudaDevice, traits: DeviceTraits, kind: DriverKind | null): Finding {
  const { ordinal, uuid, pciBusId, name, totalBytes } = device;
  const mig = uuid.startsWith("MIG-");
  const mode = traits.computeMode === null ? null : (modeNames[traits.computeMode] ?? null);
  const facts = {
    ordinal,
    name,
    uuid,
    pci_bus_id: pciBusId,
    total_bytes: Number(totalBytes),
    free_bytes: traits.freeBytes === null ? null : Number(traits.freeBytes),
    compute_mode: mode,
    mig,
    integrated: flag(traits.integrated),
    unified_addressing: flag(traits.unifiedAddressing),
    ipc_events: flag(traits.ipcEvents),
  };
  const told = [
    `device ${ordinal}: ${name}`,
    uuid,
    `PCI ${pciBusId}`,
    memoryText(totalBytes, traits.freeBytes),
    `compute mode ${mode ?? "unknown"}`,
    ...(mig ? ["a MIG instance, whose memory only processes on the same instance can share"] : []),
  ];
  const problems = problemsOf(device, traits, kind);
  if (problems.length === 0) return ok("device", told.join(", "), facts);
  const texts = problems.map(({ text }) => text);
  const status = worst(problems.map((found) => found.status)) === "FAIL" ? "FAIL" : "WARN";
  const advice = problems.map((found) => found.advice).join("; ");
  return problem(status, "device", [...told, ...texts].join(", "), advice, facts);
}

interface DeviceProblem {
  readonly status: "WARN" | "FAIL";
  readonly text: string;
  readonly advice: string;
}

function problemsOf(device: CudaDevice, traits: DeviceTraits, kind: DriverKind | null): DeviceProblem[] {
  const problems: DeviceProblem[] = [];
  const { computeMode } = traits;
  if (computeMode === prohibited) {
    const advice = `nvidia-smi -i ${device.pciBusId} -c DEFAULT`;
    problems.push({ status: "FAIL", text: "which lets no process use it", advice });
  } else if (computeMode !== null && computeMode !== 0) {
    const advice = `nvidia-smi -i ${device.pciBusId} -c DEFAULT, or use the multi-process service`;
    problems.push({ status: "WARN", text: "which lets one process use it, exporter or service", advice });
  }
  if (traits.unifiedAddressing === 0) {
    const advice = "use a GPU and a system with unified addressing";
    problems.push({ status: "FAIL", text: "without the unified addressing that sharing needs", advice });
  }
  if (traits.integrated === 1 && kind === "cuda") {
    const advice = "use a GPU with memory of its own";
    problems.push({
      status: "WARN",
      text: "an integrated GPU (Jetson), whose memory CUDA does not share",
      advice,
    });
  }
  if (traits.ipcEvents === 0) {
    const advice = "see the self-test: it alone proves whether memory can be shared";
    problems.push({ status: "WARN", text: "on which the driver denies IPC of events", advice });
  }
  return problems;
}

function flag(value: number | null): boolean | null {
  return value === null ? null : value !== 0;
}

function memoryText(totalBytes: bigint, freeBytes: bigint | null): string {
  const total = `${mebibytes(totalBytes)} MiB`;
  return freeBytes === null ? total : `${mebibytes(freeBytes)} of ${total} free`;
}

function mebibytes(bytes: bigint): bigint {
  return bytes >> 20n;
}
