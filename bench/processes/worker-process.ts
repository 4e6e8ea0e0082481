import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Question } from "./answer-questions.js";
import { bound } from "./bound.js";

export interface WorkerOptions {
  readonly core: number | null;
  readonly nodeArgs?: readonly string[];
  readonly args?: readonly string[];
}

/** A Node process that answers questions, one at a time. */
export class WorkerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #errorText = "";

  constructor(script: string, { core, nodeArgs = [], args = [] }: WorkerOptions) {
    const [file, ...rest] = bound(core, [process.execPath, ...nodeArgs, script, ...args]);
    this.#child = spawn(file, rest, { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errorText = (this.#errorText + text).slice(-4096);
    });
    // A question to a process that has just ended is answered by its end.
    this.#child.on("error", () => {});
    this.#ended = once(this.#child, "close");
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it wrote to standard error, the last of it. */
  get errorText(): string {
    return this.#errorText;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Rejects with what the process rejects with, or with what it wrote to standard error if it ends instead. */
  async ask<Answer>(question: Question): Promise<Answer> {
    const answered = new AbortController();
    const { signal } = answered;
    try {
      const reply = once(this.#child, "message", { signal }) as Promise<[Reply<Answer>]>;
      const ended = this.#ended.then((): never => {
        throw new Error(`a process of the benchmark ended: ${this.#errorText.trim()}`);
      });
      this.#child.send(question);
      const [{ answer, error }] = await Promise.race([reply, ended]);
      if (error !== undefined) throw new Error(error);
      return answer;
    } finally {
      answered.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }
}

interface Reply<Answer> {
  readonly answer: Answer;
  readonly error?: string;
}
