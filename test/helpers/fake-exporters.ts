import { RegistryError } from "../../src/core/errors.js";
import type { Exporter, ExporterWatch } from "../../src/core/exporter.js";

/** The processes of a machine, as far as the core sees them. */
export class FakeExporters implements ExporterWatch {
  /** What it returns is awaited before a watch begins. */
  beforeWatch: (() => Promise<void> | void) | undefined;
  readonly #alive = new Map<number, Set<() => void>>();
  #lastPid = 100;

  /** Watches begun and neither ended nor told of an exit. */
  get watches(): number {
    return [...this.#alive.values()].reduce((sum, watchers) => sum + watchers.size, 0);
  }

  /** A new process. */
  start(): Exporter {
    const pid = ++this.#lastPid;
    this.#alive.set(pid, new Set());
    return { pid, startTime: BigInt(pid) * 7n, bootId: "boot", pidNamespace: 4026531836n };
  }

  /** The process ends; those who watch it are told at once. */
  exit({ pid }: Exporter): void {
    const watchers = this.#alive.get(pid) ?? [];
    this.#alive.delete(pid);
    for (const onExit of watchers) onExit();
  }

  async watch({ pid }: Exporter, onExit: () => void): Promise<() => void> {
    await this.beforeWatch?.();
    const watchers = this.#alive.get(pid);
    if (watchers === undefined) {
      throw new RegistryError("FAILED_PRECONDITION", `there is no process ${pid}`);
    }
    const watcher = () => onExit();
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }
}
