import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

/** What NVIDIA's container runtime was asked to put into this container. */
export function driverCapabilitiesFinding(host: Host): Finding {
  const check = "driver_capabilities";
  const value = host.env.NVIDIA_DRIVER_CAPABILITIES ?? null;
  const facts = { NVIDIA_DRIVER_CAPABILITIES: value };
  if (value === null || value === "") return ok(check, "NVIDIA_DRIVER_CAPABILITIES is not set", facts);
  const asked = value.split(",").map((word) => word.trim());
  if (asked.includes("all") || asked.includes("compute")) {
    return ok(check, `NVIDIA_DRIVER_CAPABILITIES=${value}`, facts);
  }
  return problem(
    "WARN",
    check,
    `NVIDIA_DRIVER_CAPABILITIES=${value} lacks compute, without which a container gets no libcuda.so.1`,
    "set NVIDIA_DRIVER_CAPABILITIES=compute,utility where the container is started",
    facts,
  );
}
