import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

/** The C library of this process: NVIDIA's driver is made for glibc. */
export function cLibraryFinding(host: Host): Finding {
  if (host.glibcVersion !== null) {
    return ok("c_library", `glibc ${host.glibcVersion}`, { name: "glibc", version: host.glibcVersion });
  }
  const name = /\/ld-musl-/.test(host.readText("/proc/self/maps") ?? "") ? "musl" : null;
  return problem(
    "WARN",
    "c_library",
    `the C library is ${name ?? "not glibc"}, and NVIDIA's driver needs glibc`,
    "use an image with glibc, such as Debian's or Ubuntu's, in place of Alpine's",
    { name, version: null },
  );
}
