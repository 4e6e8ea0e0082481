import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

/** The kernel's release, and whether it can name a process by something other than its reusable number. */
export function kernelFinding(host: Host): Finding {
  const release = host.readText("/proc/sys/kernel/osrelease")?.trim() ?? null;
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(release ?? "") ?? [];
  if (release === null || major === undefined) {
    const text = "the kernel does not tell its release";
    return problem("WARN", "kernel", text, "mount /proc in this container", { release, pidfd: null });
  }
  // pidfd_open is of Linux 5.3.
  const pidfd = Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 3);
  if (pidfd) return ok("kernel", `Linux ${release}, with pidfd`, { release, pidfd });
  return problem(
    "WARN",
    "kernel",
    `Linux ${release} has no pidfd: a process that ended cannot be told from one that got its number`,
    "use Linux 5.3 or newer",
    { release, pidfd },
  );
}
