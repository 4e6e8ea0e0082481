import { readFile, stat } from "node:fs/promises";
import { UsageError } from "./config/usage-error.js";
import { Principals } from "./core/principals.js";
import type { Log } from "./log.js";

const lookEveryMs = 2000;

/** The principals of `--token-file`, kept up with the file. */
export class TokenFile {
  readonly #path: string;
  readonly #log: Log;
  #text = "";
  #principals!: Principals;
  #lastProblem = "";

  private constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** Reads the file. Rejects with a UsageError that has every problem in it. */
  static async open(path: string, log: Log): Promise<TokenFile> {
    const file = new TokenFile(path, log);
    const read = await file.#read();
    if (!("principals" in read)) {
      throw new UsageError(read.problems.map((problem) => `--token-file ${path}: ${problem}`));
    }
    file.#take(read);
    return file;
  }

  /** Who may call as the file was when it was last good. */
  get principals(): Principals {
    return this.#principals;
  }

  /** Looks every two seconds whether the file was changed, until the returned function is called. */
  watch(): () => void {
    let isLooking = false;
    const timer = setInterval(() => {
      if (isLooking) return;
      isLooking = true;
      void this.lookAgain().finally(() => {
        isLooking = false;
      });
    }, lookEveryMs).unref();
    return () => clearInterval(timer);
  }

  /** Takes over what is new in the file and logs it; a file that is no good changes nothing and is told of once. */
  async lookAgain(): Promise<void> {
    const read = await this.#read();
    if ("principals" in read) {
      this.#lastProblem = "";
      if (read.text === this.#text) return;
      this.#take(read);
      this.#log.info({ path: this.#path }, "the token file was read again");
      return;
    }
    const problem = read.problems.join("\n");
    if (problem !== this.#lastProblem) {
      this.#log.error(
        { path: this.#path, problems: read.problems },
        "the token file is no good as it is now; what it said before stays in force",
      );
    }
    this.#lastProblem = problem;
  }

  #take({ text, principals, isReadableByAll }: GoodFile): void {
    this.#text = text;
    this.#principals = principals;
    if (isReadableByAll) {
      this.#log.warn(
        { path: this.#path },
        "every user of this machine can read the token file, and try guesses at its tokens; run chmod 600 on it",
      );
    }
  }

  async #read(): Promise<GoodFile | { readonly problems: readonly string[] }> {
    let text: string;
    let mode: number;
    try {
      [text, { mode }] = await Promise.all([readFile(this.#path, "utf8"), stat(this.#path)]);
    } catch (error) {
      return { problems: [`cannot be read: ${(error as Error).message}`] };
    }
    if ((mode & 0o002) !== 0) {
      return {
        problems: ["every user of this machine can write to it, and let himself in; run chmod 600 on it"],
      };
    }
    const principals = Principals.parse(text);
    if (!(principals instanceof Principals)) return { problems: principals };
    return { text, principals, isReadableByAll: (mode & 0o004) !== 0 };
  }
}

interface GoodFile {
  readonly text: string;
  readonly principals: Principals;
  readonly isReadableByAll: boolean;
}
