import { RegistryError } from "../core/errors.js";
import { nextTurn } from "../core/event-loop.js";
import type { RegionJournal, RegionRecord } from "../core/journal.js";
import type { RegistryChange } from "../core/region.js";
import { quoteRegionName } from "../core/region-name.js";
import { type Entry, encodeEntry } from "./entry.js";
import { type FileSystem, syncFolderOf, systemFiles } from "./file-system.js";
import { findState } from "./find-state.js";
import type { Ledger } from "./ledger.js";
import { maxLineBytes } from "./line.js";
import { LogFile } from "./log-file.js";
import { stateFileError } from "./state-file-error.js";
import { maxWriteLength } from "./write-state.js";

/** Held by one process at a time. */
export interface Lock {
  release(): Promise<void>;
}

export interface StateFileOptions {
  /** Takes the lock at a path; rejects, with a message that says so, if another process has it. */
  readonly lock: (path: string) => Promise<Lock>;
  readonly fileSystem?: FileSystem;
  /** Told when the file could not be made shorter; it goes on as it is, and that is tried again later. */
  readonly onCompactionError?: (error: unknown) => void;
}

/** A state file, and what was in it. */
export interface OpenedStateFile {
  readonly file: StateFile;
  /** In the order of their generations. */
  readonly records: readonly RegionRecord[];
  /** Number of this start of the service, from 1. */
  readonly epoch: bigint;
  /** The greatest generation that any region ever had; 0 if none had one. */
  readonly lastGeneration: bigint;
  /** No change had a greater revision; those of this start are greater. */
  readonly lastRevision: bigint;
  /** Bytes at the end that a crash had cut short; nobody was told of what they held. */
  readonly cutBytes: number;
}

interface Waiting {
  readonly entry: Entry;
  readonly payload: string;
  resolve(): void;
  reject(error: unknown): void;
}

/** Revisions that are set apart at a time; so many are left out at a restart. */
const revisionBlock = 1_000_000n;

// What a line has beside its payload.
const maxPayloadBytes = maxLineBytes - 64;

/** The journal of the registry in a file of its own, which holds handles and is as secret as they are. */
export class StateFile implements RegionJournal, AsyncDisposable {
  readonly #log: LogFile;
  readonly #ledger: Ledger;
  readonly #lock: Lock;
  readonly #onCompactionError: (error: unknown) => void;
  readonly #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #reserving: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  private constructor(log: LogFile, ledger: Ledger, lock: Lock, onCompactionError: (error: unknown) => void) {
    this.#log = log;
    this.#ledger = ledger;
    this.#lock = lock;
    this.#onCompactionError = onCompactionError;
  }

  /**
   * Takes the lock at `<path>.lock`, reads the file or makes it, and writes down that the service started once
   * more. Rejects with StateFileError; what the file says of regions is then as it was.
   */
  static async open(path: string, options: StateFileOptions): Promise<OpenedStateFile> {
    const files = options.fileSystem ?? systemFiles;
    try {
      await syncFolderOf(files, path);
      const lock = await options.lock(`${path}.lock`);
      try {
        const { ledger, cutBytes } = await findState(files, path);
        const { epoch, generation, revision } = ledger.counters;
        const records = ledger.records();
        const counters = { epoch: epoch + 1n, generation, revision: revision + revisionBlock };
        ledger.apply({ kind: "counters", counters });
        const log = await LogFile.create(files, path, ledger);
        const file = new StateFile(log, ledger, lock, options.onCompactionError ?? (() => {}));
        return {
          file,
          records,
          epoch: counters.epoch,
          lastGeneration: generation,
          lastRevision: revision,
          cutBytes,
        };
      } catch (error) {
        await lock.release();
        throw error;
      }
    } catch (error) {
      throw stateFileError(path, error);
    }
  }

  registered(record: RegionRecord, replaces?: bigint): Promise<void> {
    this.#ledger.noteGeneration(record.generation);
    return this.#write({ kind: "registered", record, replaces: replaces ?? null });
  }

  left(generation: bigint): Promise<void> {
    return this.#write({ kind: "left", generation });
  }

  /**
   * For the registry to be told of its changes: keeps revisions set apart, so that none comes again after a
   * restart. Only a change that came to the end of them waits, and is rejected if no more can be had.
   */
  readonly observe = ({ revision }: Pick<RegistryChange, "revision">): undefined | Promise<void> => {
    const end = this.#ledger.counters.revision;
    if (end - revision > revisionBlock / 2n) return undefined;
    const reserving = this.#reserve(revision + revisionBlock);
    return revision > end ? reserving : undefined;
  };

  /** Waits for what was asked for before, then lets the file and its lock go. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#writing;
    try {
      await this.#log.close(this.#ledger);
    } finally {
      await this.#lock.release();
    }
  }

  #reserve(revision: bigint): Promise<void> {
    if (this.#reserving === undefined) {
      const { epoch, generation } = this.#ledger.counters;
      this.#reserving = this.#write({ kind: "counters", counters: { epoch, generation, revision } }).finally(
        () => {
          this.#reserving = undefined;
        },
      );
      // Where nobody waits for it, the next change tries again.
      this.#reserving.catch(() => {});
    }
    return this.#reserving;
  }

  async #write(entry: Entry): Promise<void> {
    if (this.#closed !== undefined) throw new RegistryError("UNAVAILABLE", "the state file is closed");
    const payload = encodeEntry(entry);
    if (entry.kind === "registered") assertFits(entry.record.name, payload);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, payload, resolve, reject });
      this.#writing ??= this.#writeWaiting();
    });
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      // What is asked for in the same turn of the event loop shares the write.
      await nextTurn();
      const batch = this.#takeBatch();
      try {
        await this.#log.append(
          batch.map(({ payload }) => payload),
          this.#ledger,
        );
      } catch (error) {
        for (const { reject } of batch) reject(cannotBeWritten(error));
        continue;
      }
      for (const { entry, resolve } of batch) {
        this.#ledger.apply(entry);
        resolve();
      }
      await this.#log.compact(this.#ledger).catch(this.#onCompactionError);
    }
    // Here and not once the promise is settled: what is asked for in between would wait for ever.
    this.#writing = undefined;
  }

  #takeBatch(): Waiting[] {
    let length = 0;
    const tooMany = this.#waiting.findIndex(({ payload }, index) => {
      length += payload.length;
      return index > 0 && length > maxWriteLength;
    });
    return this.#waiting.splice(0, tooMany === -1 ? this.#waiting.length : tooMany);
  }
}

function assertFits(name: string, payload: string): void {
  const bytes = Buffer.byteLength(payload);
  if (bytes <= maxPayloadBytes) return;
  throw new RegistryError(
    "INVALID_ARGUMENT",
    `region ${quoteRegionName(name)} with its labels takes ${bytes} bytes in the state file, at most ${maxPayloadBytes} are allowed`,
  );
}

function cannotBeWritten(cause: unknown): RegistryError {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new RegistryError("UNAVAILABLE", `the state file cannot be written: ${code ?? message}`, { cause });
}
