import { getSystemErrorMap } from "node:util";
import { RegistryError } from "../core/errors.js";
import type { Exporter, ExporterWatch } from "../core/exporter.js";
import { loadAddon, type RawWatchFailure } from "./addon.js";
import { readBootId, readPidNamespace } from "./exporter-identity.js";

export interface ExporterWatchOptions {
  /** Whether to look at start times once a second, as on kernels without pidfds. */
  readonly withoutPidfds?: boolean;
}

// No Linux gives a process a larger number.
const largestPid = 2 ** 22;

// What a limit of this process or of the machine answers; more of it helps.
const exhausted: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EAGAIN"]);

/** Watches exporters, each by one pidfd, from a thread of the addon's that runs while there are any. */
export class NativeExporterWatch implements ExporterWatch {
  readonly #withPidfd: boolean;

  constructor(options: ExporterWatchOptions = {}) {
    this.#withPidfd = options.withoutPidfds !== true;
  }

  async watch(exporter: Exporter, onExit: () => void): Promise<() => void> {
    await requireThisBoot(exporter);
    await requireThisNamespace(exporter);
    requirePossible(exporter);
    const addon = loadAddon();
    const watch = addon.watchProcess(exporter.pid, exporter.startTime, this.#withPidfd);
    if ("failed" in watch) throw watchError(exporter, watch);
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      addon.unwatchProcess(watch.id);
    };
    void watch.exited.then((exited) => {
      if (!exited || isOver) return;
      end();
      onExit();
    });
    return end;
  }
}

async function requireThisBoot({ bootId }: Exporter): Promise<void> {
  const own = await readBootId().catch(cannotRead);
  if (bootId === own) return;
  const claimed = bootId.length > own.length ? `${bootId.slice(0, own.length)}...` : bootId;
  throw new RegistryError(
    "FAILED_PRECONDITION",
    `exporter.boot_id is '${claimed}' and this machine's is '${own}': the exporter is of another machine or of an earlier boot; export the memory again from a process that runs here now`,
  );
}

async function requireThisNamespace({ pid, pidNamespace }: Exporter): Promise<void> {
  const own = await readPidNamespace("self").catch(cannotRead);
  if (pidNamespace !== own) {
    throw new RegistryError(
      "FAILED_PRECONDITION",
      `exporter.pid_namespace is ${pidNamespace} and this service's is ${own}, so the exporter's pid is not its number here; run both in one PID namespace (containers: share it)`,
    );
  }
  // Of another user's process it cannot be read, and of one that is gone there is none.
  const actual = await readPidNamespace(pid).catch(() => own);
  if (actual === own) return;
  throw new RegistryError(
    "FAILED_PRECONDITION",
    `exporter.pid_namespace is ${pidNamespace}, and process ${pid} lives in ${actual}; send the number and the namespace as the exporter itself sees them`,
  );
}

function requirePossible({ pid, startTime }: Exporter): void {
  const isPossible = Number.isInteger(pid) && pid > 0 && pid <= largestPid;
  if (!isPossible || BigInt.asUintN(64, startTime) !== startTime) throw goneError(pid);
}

function watchError(exporter: Exporter, failure: RawWatchFailure): RegistryError {
  const { pid, startTime } = exporter;
  switch (failure.failed) {
    case "gone":
      return goneError(pid);
    case "another":
      return new RegistryError(
        "FAILED_PRECONDITION",
        `exporter.start_time is ${startTime} and process ${pid} was started at ${failure.startTime}: it is another process, which has the number now; send field 22 of /proc/${pid}/stat, or export the memory again`,
      );
    case "hidden":
      return new RegistryError(
        "FAILED_PRECONDITION",
        `exporter.start_time cannot be checked: /proc does not show process ${pid} to this service; run both as the same user, or mount /proc without hidepid`,
      );
    case "system":
      return systemError(failure);
  }
}

function goneError(pid: number): RegistryError {
  return new RegistryError(
    "FAILED_PRECONDITION",
    `exporter.pid is ${pid} and there is no such process, or it has exited; export the memory again from a process that runs`,
  );
}

function systemError({ call, code }: RawWatchFailure): RegistryError {
  const [name, text] = getSystemErrorMap().get(-code) ?? [`errno ${code}`, "unknown"];
  return unwatchableError(name, `${call}: ${name}: ${text}`);
}

function cannotRead(cause: NodeJS.ErrnoException): never {
  throw unwatchableError(cause.code ?? "", cause.message, cause);
}

function unwatchableError(name: string, reason: string, cause?: unknown): RegistryError {
  return new RegistryError(
    exhausted.has(name) ? "RESOURCE_EXHAUSTED" : "UNAVAILABLE",
    `the exporter cannot be watched: ${reason}; register without an exporter, or try again later`,
    { cause },
  );
}
