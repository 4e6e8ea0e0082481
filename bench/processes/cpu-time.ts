import { readdirSync, readFileSync } from "node:fs";

/**
 * CPU time of a process so far, in microseconds, in the kernel and outside, of the threads that it has now; null
 * where the kernel does not tell. Finer than the clock ticks of /proc/<pid>/stat.
 */
export function cpuMicrosOf(pid: number): number | null {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const nanoseconds = threads.map((thread) => nanosecondsOf(`/proc/${pid}/task/${thread}/schedstat`));
    return nanoseconds.reduce((sum, each) => sum + each, 0) / 1000;
  } catch {
    return null;
  }
}

function nanosecondsOf(schedstat: string): number {
  return Number(readFileSync(schedstat, "utf8").split(" ", 1)[0]);
}
