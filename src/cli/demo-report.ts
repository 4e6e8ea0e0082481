import type { CommandIo, CommandResult } from "./command.js";

/** What the demo prints for a person, and what it adds up to. */
export interface Report {
  step(title: string): void;
  tell(text: string): void;
  check(text: string, held: boolean): void;
  end(): CommandResult;
}

/** Prints to standard output; `end` gives code 0 only if every check held. */
export function createReport(io: CommandIo): Report {
  let steps = 0;
  let held = 0;
  let failed = 0;
  return {
    step: (title) => io.stdout.write(`\n${++steps}. ${title}\n`),
    tell: (text) => io.stdout.write(`   ${text}\n`),
    check: (text, isHeld) => {
      if (isHeld) held++;
      else failed++;
      io.stdout.write(`   ${isHeld ? "ok    " : "FAILED"} ${text}\n`);
    },
    end: () => {
      io.stdout.write(
        `\n${failed === 0 ? `All ${held} checks held.` : `${failed} of ${held + failed} checks failed.`}\n`,
      );
      return { code: failed === 0 ? 0 : 1 };
    },
  };
}
