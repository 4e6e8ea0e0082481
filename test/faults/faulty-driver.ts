import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
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
  #readLines = 0;

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
  refuse({ name, k }: DriverCall, result: number): void {
    this.#put(`${name}@${k}=${result}`);
  }

  heal(): void {
    this.#put("");
  }

  /** The calls since this was asked last, by function and result. */
  newCalls(): DriverCalls {
    const lines = this.#lines();
    const calls = new DriverCalls(lines.slice(this.#readLines));
    this.#readLines = lines.length;
    return calls;
  }

  /** The calls since the process began. */
  allCalls(): DriverCalls {
    return new DriverCalls(this.#lines());
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

  #lines(): string[] {
    const path = this.#copy.variables.CUDASHM_EMULATED_LOG ?? "";
    return readFileSync(path, "latin1").split("\n").slice(0, -1);
  }
}

/** What a library was called with. */
export class DriverCalls {
  readonly #counts = new Map<string, Map<number, number>>();

  constructor(lines: readonly string[]) {
    for (const line of lines) {
      const [, , name = "", result] = line.split(" ", 4);
      const results = this.#counts.get(name) ?? new Map<number, number>();
      results.set(Number(result), (results.get(Number(result)) ?? 0) + 1);
      this.#counts.set(name, results);
    }
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
