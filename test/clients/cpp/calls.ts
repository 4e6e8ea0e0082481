import { Program } from "./program.js";

/** A program that makes calls side by side: each line it is sent and each it answers with begins with an id. */
export class Calls implements AsyncDisposable {
  readonly #program: Program;
  readonly #waiting = new Map<string, (answer: string) => void>();
  #count = 0;

  constructor(file: string, args: readonly string[]) {
    this.#program = new Program(file, args);
    void this.#read();
  }

  /** Starts a call; `answer` is what the program says of its end. */
  start(line: string): { readonly id: string; readonly answer: Promise<string> } {
    const id = String(this.#count++);
    const answer = new Promise<string>((resolve) => this.#waiting.set(id, resolve));
    this.#program.send(`${id} ${line}`);
    return { id, answer };
  }

  send(line: string): void {
    this.#program.send(line);
  }

  end(): Promise<number | null> {
    return this.#program.end();
  }

  async #read(): Promise<void> {
    for await (const line of this.#program.lines()) {
      const blank = line.indexOf(" ");
      const id = line.slice(0, blank);
      this.#waiting.get(id)?.(line.slice(blank + 1));
      this.#waiting.delete(id);
    }
    // What is unanswered now stays so: the program has ended.
    for (const resolve of this.#waiting.values()) resolve("the program has ended");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }
}
