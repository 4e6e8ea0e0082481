import type { DriverKind } from "../core/driver.js";
import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

const sysPtrace = 19n;

/** As whom this process runs, and whose memory the emulated driver can then reach. */
export function userFinding(host: Host, kind: DriverKind | null): Finding {
  const status = host.readText("/proc/self/status") ?? "";
  const [, uidText] = /^Uid:\t\d+\t(\d+)/m.exec(status) ?? [];
  const [, capabilities] = /^CapEff:\t([0-9a-f]+)$/m.exec(status) ?? [];
  if (uidText === undefined || capabilities === undefined) {
    const facts = { uid: null, cap_sys_ptrace: null };
    return problem("WARN", "user", "/proc does not tell the user", "mount /proc in this container", facts);
  }
  const uid = Number(uidText);
  const mayTrace = ((BigInt(`0x${capabilities}`) >> sysPtrace) & 1n) === 1n;
  const facts = { uid, cap_sys_ptrace: mayTrace };
  if (kind !== "emulated") return ok("user", `uid ${uid}`, facts);
  if (mayTrace) return ok("user", `uid ${uid} with CAP_SYS_PTRACE: exporters may run as any user`, facts);
  return ok(
    "user",
    `uid ${uid} without CAP_SYS_PTRACE: exporters must run as uid ${uid} too, with no capability that this process lacks`,
    facts,
  );
}
