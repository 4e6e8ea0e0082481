import type { Readable, Writable } from "node:stream";
import type { Environment } from "../config/read-options.js";

/** What a command gets of the process it runs in. */
export interface CommandIo {
  readonly args: readonly string[];
  readonly env: Environment;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** What to run, and with which first arguments, for another process of this program. */
  readonly self: { readonly executable: string; readonly args: readonly string[] };
}

export interface CommandResult {
  /** 0: done. 1: could not. 2: was asked wrongly. */
  readonly code: number;
  /** True if something that cannot be stopped would keep the process alive: it must be ended. */
  readonly stuck?: boolean;
}

export interface Command {
  /** The text of `cudashm <command> --help`. */
  help(): string;
  run(io: CommandIo): Promise<CommandResult>;
}
