/** What is wrong with a command line or its environment: all of it, one sentence each. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }

  /** The one message for the person at the terminal. */
  toMessage(helpCommand: string): string {
    const list = this.problems.map((problem) => `  - ${problem}\n`).join("");
    return `cudashm: the command line or environment has ${this.problems.length === 1 ? "a problem" : `${this.problems.length} problems`}:\n${list}See: ${helpCommand}\n`;
  }
}
