import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCudaDriver, type SelectedDriver } from "../../src/native/driver-selection.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

/** One call of a function, counted from 1. */
export interface DriverCall {
  readonly name: string;
  readonly k: number;
}

export interface FaultyDriverOptions {
  readonly contextLingerMs?: number;
  readonly variables?: Readonly<Record<string, string>>;
  /** What goes wrong from the start, as the driver's variable has it. */
  readonly faults?: string;
  /** Milliseconds. */
  readonly now?: () => number;
}

/** A driver on a library of its own, which refuses the calls that it is told to refuse. */
export class FaultyDriver implements Disposable {
  readonly driver: SelectedDriver;
  readonly libraryPath: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "cudashm-faults-"));
  readonly #faultsPath = join(this.#folder, "faults");
  readonly #copy: ReturnType<typeof emulatedCopy>;
  readonly #all = new DriverCalls();
  #new = new DriverCalls();
  #read = 0;

  private constructor({ contextLingerMs = 0, variables, faults = "", now }: FaultyDriverOptions) {
    this.#put(faults);
    this.#copy = emulatedCopy({ ...variables, CUDASHM_EMULATED_FAULTS_FILE: this.#faultsPath });
    this.libraryPath = this.#copy.path;
    this.driver = createCudaDriver({
      preference: "emulated",
      libraryPath: this.libraryPath,
      contextLingerMs,
      ...(now !== undefined && { now }),
    });
  }

  /** Resolves once the library was called, whatever it answered. */
  static async start(options: FaultyDriverOptions = {}): Promise<FaultyDriver> {
    const faulty = new FaultyDriver(options);
    await faulty.#copy.withVariables(() => faulty.driver.devices().catch(() => {}));
    return faulty;
  }

  /** Has a call, counted from now on, answer `result`. */
  refuse(call: DriverCall, result: number): void {
    this.refuseAll([call], result);
  }

  /** Has several calls answer `result`. */
  refuseAll(calls: readonly DriverCall[], result: number): void {
    this.#put(calls.map(({ name, k }) => `${name}@${k}=${result}`).join(","));
  }

  heal(): void {
    this.#put("");
  }

  /** The calls since this was asked last, by function and result. */
  newCalls(): DriverCalls {
    this.#readOn();
    const calls = this.#new;
    this.#new = new DriverCalls();
    return calls;
  }

  /** The calls since the process began. */
  allCalls(): DriverCalls {
    this.#readOn();
    return this.#all;
  }

  [Symbol.dispose](): void {
    this.#copy[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true });
  }

  #put(faults: string): void {
    const next = `${this.#faultsPath}.next`;
    writeFileSync(next, faults);
    renameSync(next, this.#faultsPath);
  }

  #readOn(): void {
    const log = openSync(this.#copy.variables.CUDASHM_EMULATED_LOG ?? "", "r");
    try {
      const bytes = Buffer.alloc(fstatSync(log).size - this.#read);
      const count = readSync(log, bytes, 0, bytes.length, this.#read);
      const lines = bytes.toString("latin1", 0, count).split("\n");
      // A line that is not ended yet is read next time.
      this.#read += count - (lines.pop() ?? "").length;
      for (const line of lines) {
        const [, , name = "", result] = line.split(" ", 4);
        for (const calls of [this.#all, this.#new]) calls.add(name, Number(result));
      }
    } finally {
      closeSync(log);
    }
  }
}

/** What a library was called with. */
export class DriverCalls {
  readonly #counts = new Map<string, Map<number, number>>();

  add(name: string, result: number): void {
    const results = this.#counts.get(name) ?? new Map<number, number>();
    results.set(result, (results.get(result) ?? 0) + 1);
    this.#counts.set(name, results);
  }

  /** Calls of a function that ended with `result`. */
  count(name: string, result = 0): number {
    return this.#counts.get(name)?.get(result) ?? 0;
  }

  /** Calls of a function that ended with anything but success. */
  refused(name: string): number {
    return sum(this.#counts.get(name)) - this.count(name);
  }

  /** Every single call, function by function. */
  each(): DriverCall[] {
    return [...this.#counts].flatMap(([name, results]) => {
      return Array.from({ length: sum(results) }, (_, index) => ({ name, k: index + 1 }));
    });
  }
}

function sum(counts: ReadonlyMap<number, number> | undefined): number {
  return [...(counts?.values() ?? [])].reduce((total, count) => total + count, 0);
}
