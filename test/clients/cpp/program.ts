import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { runCommand, testDriver } from "../../helpers/cudashm.js";

/** A C++ program that is sent lines and answers with lines. */
export class Program implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterableIterator<string>;
  readonly #exit: Promise<number | null>;

  constructor(file: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.#child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"], env });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#exit = once(this.#child, "close").then(([code]) => code);
  }

  send(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  async nextLine(): Promise<string> {
    const next = await this.#lines.next();
    if (next.done) throw new Error(`the program ended with code ${await this.#exit}`);
    return next.value;
  }

  lines(): AsyncIterable<string> {
    return this.#lines;
  }

  /** Closes its standard input and gives the code it ends with; null if a signal ended it. */
  async end(): Promise<number | null> {
    this.#child.stdin.end();
    return this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exit;
  }
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. */
export async function runProgram(file: string, args: readonly string[], input = ""): Promise<ProgramEnd> {
  const child = spawn(file, args, { stdio: "pipe" });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  // A program that has no use for its input may end before it was written.
  child.stdin.on("error", () => {}).end(input);
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

let environment: Promise<NodeJS.ProcessEnv> | undefined;

/** What a program needs to find the driver that the tests run on. */
export function driverEnvironment(): Promise<NodeJS.ProcessEnv> {
  environment ??= findDriver();
  return environment;
}

async function findDriver(): Promise<NodeJS.ProcessEnv> {
  if (testDriver !== "emulated") return process.env;
  const { lines } = await runCommand(["emulated-driver"]);
  return { ...process.env, LD_LIBRARY_PATH: lines[0] };
}
