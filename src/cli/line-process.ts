import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Environment } from "../config/read-options.js";

/** Another process that talks in lines: read its output a line at a time, send it lines, end it. */
export class LineProcess implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #reader: Interface;
  readonly #lines: AsyncIterableIterator<string>;
  readonly #exit: Promise<ProcessEnd>;
  #errorText = "";

  constructor(executable: string, args: readonly string[], env?: Environment) {
    this.#child = spawn(executable, args, {
      stdio: ["pipe", "pipe", "pipe"],
      ...(env && { env: { ...env } }),
    });
    this.#reader = createInterface({ input: this.#child.stdout });
    this.#lines = this.#reader[Symbol.asyncIterator]();
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errorText += text;
    });
    // Writing to a process that has just ended is told by its end.
    this.#child.stdin.on("error", () => {});
    this.#exit = once(this.#child, "close").then(([code, signal]) => ({ code, signal }));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** All it has written to standard error. */
  get errorText(): string {
    return this.#errorText;
  }

  /** How it ended, once it has and its output was read to the end. */
  get exit(): Promise<ProcessEnd> {
    return this.#exit;
  }

  /** The next line of its output. Rejects with what it wrote to standard error if it ends instead. */
  async nextLine(): Promise<string> {
    const next = await this.#lines.next();
    if (!next.done) return next.value;
    const { code, signal } = await this.#exit;
    throw new Error(`process ended (${signal ?? `code ${code}`}): ${this.#errorText.trim()}`);
  }

  /** The lines of its output that were not read yet, to the end. */
  lines(): AsyncIterable<string> {
    return this.#lines;
  }

  /** Sends a JSON line and reads the JSON line that answers it. Rejects with its `error`, if it holds one. */
  async ask<Answer extends object>(command: object): Promise<Answer> {
    this.#child.stdin.write(`${JSON.stringify(command)}\n`);
    const answer = JSON.parse(await this.nextLine()) as Answer & { error?: string };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }

  /** Stops reading its output: what it writes from now on finds no reader. */
  closeOutput(): void {
    this.#reader.close();
    this.#child.stdout.destroy();
  }

  /** Closes its standard input and waits for its end. */
  async endInput(): Promise<ProcessEnd> {
    this.#child.stdin.end();
    return this.#exit;
  }

  /** Sends it a signal and waits for its end. */
  async kill(signal: NodeJS.Signals = "SIGTERM"): Promise<ProcessEnd> {
    this.#child.kill(signal);
    return this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill("SIGKILL");
  }
}

export interface ProcessEnd {
  /** null if a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}
