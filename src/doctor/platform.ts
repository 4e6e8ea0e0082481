import type { DriverKind } from "../core/driver.js";
import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

const isolationFiles = ["/.dockerenv", "/run/.containerenv"];

/** Whether this is a platform whose driver cannot share memory between processes. */
export function platformFinding(host: Host, kind: DriverKind | null): Finding {
  const container =
    isolationFiles.some((path) => host.exists(path)) || host.env.KUBERNETES_SERVICE_HOST !== undefined;
  const platform = platformOf(host);
  const facts = { platform, architecture: host.architecture, container };
  const where = `${host.architecture}${container ? ", in a container" : ""}`;
  // The emulated driver asks nothing of the platform.
  if (platform === "linux" || kind === "emulated")
    return ok("platform", `${titles[platform]}, ${where}`, facts);
  return problem(
    "WARN",
    "platform",
    `${titles[platform]}, ${where}: its CUDA driver cannot share memory between processes`,
    "serve on a Linux machine with a GPU of its own, or use --driver emulated",
    facts,
  );
}

type Platform = "linux" | "wsl2" | "jetson";

const titles: Readonly<Record<Platform, string>> = { linux: "Linux", wsl2: "WSL2", jetson: "Jetson" };

function platformOf(host: Host): Platform {
  if (host.exists("/dev/dxg") || /microsoft/i.test(host.readText("/proc/version") ?? "")) return "wsl2";
  if (host.exists("/etc/nv_tegra_release")) return "jetson";
  return "linux";
}
