import { constants } from "node:fs";
import { dirname } from "node:path";
import type { FileSystem, OpenFile } from "../../src/state/file-system.js";
import { systemError } from "./fault-files.js";

const sectorBytes = 512;

/** A change of a file that is not on the disk yet. */
type Pending = { readonly at: number; readonly bytes: Buffer } | { readonly truncate: number };

class MemoryFile {
  /** As a reader sees it. */
  content: Buffer;
  /** As it is on the disk. */
  durable: Buffer;
  pending: Pending[] = [];

  constructor(content: Buffer = Buffer.alloc(0)) {
    this.content = content;
    this.durable = content;
  }

  change(change: Pending): void {
    this.content = applied(this.content, change);
    this.pending.push(change);
  }

  sync(): void {
    this.durable = this.content;
    this.pending = [];
  }
}

function applied(content: Buffer, change: Pending): Buffer {
  const size =
    "truncate" in change ? change.truncate : Math.max(content.length, change.at + change.bytes.length);
  const next = Buffer.alloc(size);
  content.copy(next);
  if ("bytes" in change) change.bytes.copy(next, change.at);
  return next;
}

/**
 * A folder in memory that knows what of it is on the disk, so that a power failure can be had: which sectors of the
 * writes since the last sync made it is by chance, in whatever order, and how many of the changes of names, in order.
 */
export class MemoryDisk implements FileSystem {
  readonly folder = "/disk";
  readonly path = `${this.folder}/state`;
  #names = new Map<string, MemoryFile>();
  #durableNames = new Map<string, MemoryFile>();
  #pendingNames: ((names: Map<string, MemoryFile>) => void)[] = [];

  /** The bytes of the state file. */
  get bytes(): Buffer {
    return this.#names.get(this.path)?.content ?? Buffer.alloc(0);
  }

  /** The paths of the files there are. */
  get paths(): readonly string[] {
    return [...this.#names.keys()];
  }

  /** A disk with this as its state file. */
  static with(bytes: Uint8Array): MemoryDisk {
    const disk = new MemoryDisk();
    disk.#names.set(disk.path, new MemoryFile(Buffer.from(bytes)));
    disk.#durableNames = new Map(disk.#names);
    return disk;
  }

  /** What is found after a power failure. `chance` answers a number from 0 and below `n`. */
  afterPowerFailure(chance: (n: number) => number): MemoryDisk {
    const disk = new MemoryDisk();
    const names = new Map(this.#durableNames);
    for (const change of this.#pendingNames.slice(0, chance(this.#pendingNames.length + 1))) change(names);
    for (const [path, file] of names) disk.#names.set(path, new MemoryFile(survivorOf(file, chance)));
    disk.#durableNames = new Map(disk.#names);
    return disk;
  }

  async open(path: string, flags: number): Promise<OpenFile> {
    if (path === this.folder) return this.#openFolder();
    if (dirname(path) !== this.folder) throw systemError("ENOENT");
    const found = this.#names.get(path);
    if (found === undefined && (flags & constants.O_CREAT) === 0) throw systemError("ENOENT");
    if (found !== undefined && (flags & constants.O_EXCL) !== 0) throw systemError("EEXIST");
    const file = found ?? new MemoryFile();
    if (found === undefined) this.#rename((names) => names.set(path, file));
    return openMemoryFile(file);
  }

  async rename(from: string, to: string): Promise<void> {
    const file = this.#names.get(from);
    if (file === undefined) throw systemError("ENOENT");
    this.#rename((names) => {
      names.delete(from);
      names.set(to, file);
    });
  }

  async unlink(path: string): Promise<void> {
    if (!this.#names.has(path)) throw systemError("ENOENT");
    this.#rename((names) => names.delete(path));
  }

  #rename(change: (names: Map<string, MemoryFile>) => void): void {
    change(this.#names);
    this.#pendingNames.push(change);
  }

  #openFolder(): OpenFile {
    return {
      ...openMemoryFile(new MemoryFile()),
      sync: async () => {
        this.#durableNames = new Map(this.#names);
        this.#pendingNames = [];
      },
    };
  }
}

function openMemoryFile(file: MemoryFile): OpenFile {
  return {
    stat: async () => ({ isFile: () => true, mode: 0o100600, nlink: 1, uid: process.geteuid?.() ?? 0 }),
    read: async (into, offset, length, position) => {
      const bytes = file.content.subarray(position, position + length);
      into.set(bytes, offset);
      return { bytesRead: bytes.length };
    },
    write: async (from, offset, length, position) => {
      file.change({ at: position, bytes: Buffer.from(from.subarray(offset, offset + length)) });
      return { bytesWritten: length };
    },
    truncate: async (length) => file.change({ truncate: length }),
    chmod: async () => {},
    datasync: async () => file.sync(),
    sync: async () => file.sync(),
    close: async () => {},
  };
}

function survivorOf(file: MemoryFile, chance: (n: number) => number): Buffer {
  let content = file.durable;
  for (const change of file.pending) {
    if ("truncate" in change) {
      if (chance(2) === 1) content = applied(content, change);
      continue;
    }
    for (let from = 0; from < change.bytes.length; ) {
      // Up to the end of the sector that it begins in.
      const to = Math.min(change.bytes.length, from + sectorBytes - ((change.at + from) % sectorBytes));
      if (chance(2) === 1)
        content = applied(content, { at: change.at + from, bytes: change.bytes.subarray(from, to) });
      from = to;
    }
  }
  return content;
}
