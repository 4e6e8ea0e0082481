import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release } from "node:os";

/** The cores that servers and the load are bound to; null leaves a process to the scheduler. */
export interface Cores {
  readonly server: number | null;
  readonly load: number | null;
}

/** One core each, if this process may use two and can bind others to them. */
export function chooseCores(): Cores {
  const [server, load] = allowedCores();
  const bindable = spawnSync("taskset", ["--version"], { stdio: "ignore" }).status === 0;
  return bindable && server !== undefined && load !== undefined
    ? { server, load }
    : { server: null, load: null };
}

function allowedCores(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
  return parseCoreList(list);
}

/** The numbers of a list as the kernel writes it, such as `0-2,5`. */
export function parseCoreList(list: string): number[] {
  return list.split(",").flatMap((part) => {
    const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (from === undefined) return [];
    const [first, last] = [Number(from), Number(to ?? from)];
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/** What the figures are measured on, and what else runs there: with more than a little of it they say nothing. */
export function describeMachine({ server, load }: Cores): Readonly<Record<string, string | number>> {
  return {
    node: process.version,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    kernel: release(),
    "load average": loadavg()[0]?.toFixed(2) ?? "unknown",
    driver: "emulated",
    pinning: server === null ? "none" : `servers on core ${server}, load on core ${load}`,
  };
}
