import { readFile, stat } from "node:fs/promises";
import type { Exporter } from "../core/exporter.js";

/** This machine's boot. Rejects with the file system's error. */
export async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "latin1")).trim();
}

/**
 * The PID namespace of a process, `self` for this one. Rejects with the file system's error: EACCES for a process of
 * another user, ENOENT if there is none.
 */
export async function readPidNamespace(pid: number | "self"): Promise<bigint> {
  return (await stat(`/proc/${pid}/ns/pid`, { bigint: true })).ino;
}

/** What tells the process of this number from all others. Rejects with the file system's error. */
export async function readExporter(pid: number): Promise<Exporter> {
  const [bootId, pidNamespace, status] = await Promise.all([
    readBootId(),
    readPidNamespace(pid),
    readFile(`/proc/${pid}/stat`, "latin1"),
  ]);
  return { pid, startTime: startTimeOf(status), bootId, pidNamespace };
}

/** What tells this process from all others, for the exporter of memory that it registers. */
export async function currentExporter(): Promise<Exporter> {
  return readExporter(process.pid);
}

// The second field is the program's name in brackets and may itself hold blanks and brackets; the first after it is
// the third.
function startTimeOf(status: string): bigint {
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  return BigInt(fields[22 - 3] ?? "");
}
