import { type FileSystem, type OpenFile, removeFile, syncFolderOf, writeAll } from "./file-system.js";
import type { Ledger } from "./ledger.js";
import { encodeLine } from "./line.js";
import { writeState } from "./write-state.js";

/** Lines that a file may have before it is worth writing anew, and how many for each of its regions. */
const maxLines = 1000;
const maxLinesPerRegion = 4;

/** What of the file may not be as it should: nothing, what comes after its length, or any of it. */
type Doubt = "none" | "tail" | "file";

/** The file and what is known of it. One call at a time. */
export class LogFile {
  readonly #files: FileSystem;
  readonly #path: string;
  #file: OpenFile | undefined;
  #length = 0;
  #lines = 0;
  #doubt: Doubt = "file";
  #longAbove = maxLines;

  private constructor(files: FileSystem, path: string) {
    this.#files = files;
    this.#path = path;
  }

  /** Puts a file with what the ledger holds at `path`, in place of what is there. */
  static async create(files: FileSystem, path: string, ledger: Ledger): Promise<LogFile> {
    const log = new LogFile(files, path);
    try {
      await log.#rewrite(ledger);
    } catch (error) {
      await log.#file?.close().catch(() => {});
      throw error;
    }
    return log;
  }

  /**
   * Adds a line for each payload and resolves once they are on the disk. If it rejects, the file is as it was, or,
   * where that failed as well, is made so before the next append does anything. `ledger` is what it holds so far.
   */
  async append(payloads: readonly string[], ledger: Ledger): Promise<void> {
    // Somebody removed it: what is added to it would be gone with this process.
    if ((await this.#file?.stat())?.nlink === 0) this.#doubt = "file";
    await this.#mend(ledger);
    const start = this.#length;
    const bytes = Buffer.from(payloads.map((payload) => encodeLine({ start, payload })).join(""));
    try {
      await this.#write(bytes);
    } catch (error) {
      await this.#mend(ledger).catch(() => {});
      throw error;
    }
    this.#length += bytes.length;
    this.#lines += payloads.length;
  }

  /** Rewrites the file if that makes it much shorter. After a failure it may first grow to twice its length. */
  async compact(ledger: Ledger): Promise<void> {
    if (this.#lines <= Math.max(this.#longAbove, maxLinesPerRegion * ledger.size)) return;
    this.#longAbove = 2 * this.#lines;
    await this.#rewrite(ledger);
  }

  /** Tries for the last time to take out what was rejected. */
  async close(ledger: Ledger): Promise<void> {
    await this.#mend(ledger).catch(() => {});
    await this.#file?.close();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const file = this.#file as OpenFile;
    this.#doubt = "tail";
    await writeAll(file, bytes, this.#length);
    // After a sync that failed, what the kernel still holds says nothing about the disk, and a second sync succeeds.
    this.#doubt = "file";
    await file.datasync();
    this.#doubt = "none";
  }

  async #mend(ledger: Ledger): Promise<void> {
    if (this.#doubt === "none") return;
    const isTailOnly = this.#doubt === "tail";
    // Not by a rewrite alone: on a full disk there is room for less, but not for more.
    const isCut = await this.#cutTail().catch(() => false);
    if (isTailOnly && isCut) this.#doubt = "none";
    else await this.#rewrite(ledger);
  }

  async #cutTail(): Promise<true> {
    const file = this.#file as OpenFile;
    await file.truncate(this.#length);
    this.#doubt = "file";
    await file.datasync();
    return true;
  }

  /** Puts a new file in place of this one, with what the ledger holds and no more. */
  async #rewrite(ledger: Ledger): Promise<void> {
    const newPath = `${this.#path}.new`;
    const { file, length, lines } = await writeState(this.#files, newPath, ledger);
    // From here to the end a power failure can bring either file back, so neither can be added to.
    this.#doubt = "file";
    try {
      await this.#files.rename(newPath, this.#path);
    } catch (error) {
      await file.close().catch(() => {});
      await removeFile(this.#files, newPath).catch(() => {});
      throw error;
    }
    await this.#file?.close().catch(() => {});
    this.#file = file;
    this.#length = length;
    this.#lines = lines;
    await syncFolderOf(this.#files, this.#path);
    this.#doubt = "none";
    this.#longAbove = maxLines;
  }
}
