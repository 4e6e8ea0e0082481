import type { CudaDevice, DriverKind } from "../core/driver.js";
import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

/** Which devices this process was told to see, and in which order. */
export function visibleDevicesFinding(host: Host, devices: readonly CudaDevice[] | null): Finding {
  const check = "visible_devices";
  const value = host.env.CUDA_VISIBLE_DEVICES ?? null;
  const facts = { CUDA_VISIBLE_DEVICES: value };
  if (value === null) return ok(check, "CUDA_VISIBLE_DEVICES is not set: every device is seen", facts);
  // Whether it hides all of them is for the driver's finding to say.
  if (devices === null) return ok(check, `CUDA_VISIBLE_DEVICES=${value}`, facts);
  const named = value.split(",").filter((word) => word.trim() !== "").length;
  const seen = devices.length;
  if (seen === named) {
    const text = `CUDA_VISIBLE_DEVICES=${value}: device_id is a place in this list, so clients with another list use other numbers`;
    return ok(check, text, facts);
  }
  return problem(
    "WARN",
    check,
    `CUDA_VISIBLE_DEVICES=${value} lets ${seen} of the ${named} devices that it names be seen: the list ends at the first entry that is no device`,
    "name existing devices, by index or by UUID, or unset the variable",
    facts,
  );
}

/** Whether this process numbers the devices as nvidia-smi and its clients do. */
export function deviceOrderFinding(
  host: Host,
  kind: DriverKind | null,
  devices: readonly CudaDevice[] | null,
): Finding {
  const check = "device_order";
  const value = host.env.CUDA_DEVICE_ORDER ?? null;
  const facts = { CUDA_DEVICE_ORDER: value };
  const count = devices?.length ?? 0;
  if (value === "PCI_BUS_ID")
    return ok(check, "CUDA_DEVICE_ORDER=PCI_BUS_ID: numbered as by nvidia-smi", facts);
  const told = value === null ? "CUDA_DEVICE_ORDER is not set" : `CUDA_DEVICE_ORDER=${value}`;
  if (kind !== "cuda" || count < 2) return ok(check, `${told}, which makes no difference here`, facts);
  return problem(
    "WARN",
    check,
    `${told}: the ${count} devices are numbered fastest first, not as by nvidia-smi or by clients that set it`,
    "set CUDA_DEVICE_ORDER=PCI_BUS_ID for the service and for its clients",
    facts,
  );
}
