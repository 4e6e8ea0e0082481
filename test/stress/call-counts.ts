import { closeSync, mkdtempSync, openSync, readSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const pieceBytes = 1024 * 1024;
const keptBytes = 16 * 1024 * 1024;

/** What the emulated driver did in a process that is started with `variables`, counted for as long as one likes. */
export class CallCounts implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "cudashm-calls-"));
  readonly #path = join(this.#folder, "calls");
  readonly #successes = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  #read = 0;
  #rest = "";

  get variables(): Readonly<Record<string, string>> {
    return { CUDASHM_EMULATED_LOG: this.#path };
  }

  /** Handles that are open: opens less closes. */
  openHandles(): number {
    this.#readOn();
    return (
      this.#of(this.#successes, "cuIpcOpenMemHandle_v2") - this.#of(this.#successes, "cuIpcCloseMemHandle")
    );
  }

  /** Calls of a function that were refused. */
  refused(name: string): number {
    this.#readOn();
    return this.#of(this.#refusals, name);
  }

  /** Gives up what of the log is counted, if that is much. No call may be under way. */
  forget(): void {
    this.#readOn();
    if (this.#read < keptBytes) return;
    truncateSync(this.#path);
    this.#read = 0;
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }

  #of(counts: ReadonlyMap<string, number>, name: string): number {
    return counts.get(name) ?? 0;
  }

  #readOn(): void {
    const piece = Buffer.alloc(pieceBytes);
    const file = openSync(this.#path, "r");
    try {
      for (;;) {
        const length = readSync(file, piece, 0, piece.length, this.#read);
        if (length === 0) return;
        this.#read += length;
        const lines = (this.#rest + piece.toString("latin1", 0, length)).split("\n");
        this.#rest = lines.pop() ?? "";
        for (const line of lines) this.#count(line);
      }
    } finally {
      closeSync(file);
    }
  }

  #count(line: string): void {
    const [, , name = "", result] = line.split(" ", 4);
    const counts = result === "0" ? this.#successes : this.#refusals;
    counts.set(name, this.#of(counts, name) + 1);
  }
}
