import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A call log of the emulated driver, for a process that is started with `variables`. */
export function callLog() {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-call-log-"));
  const path = join(folder, "calls");
  return {
    variables: { CUDASHM_EMULATED_LOG: path },
    /** How many calls of `name` there were with this result. */
    count: (name: string, result = 0): number =>
      readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => {
          const [, , called, code] = line.split(" ");
          return called === name && code === String(result);
        }).length,
    /** Every function that was called, in order of their names' bytes. */
    functions: (): string[] => {
      const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
      return [...new Set(lines.map((line) => line.split(" ")[2] ?? ""))].sort();
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
}
