import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../../scripts/setup-python.mjs", import.meta.url));
const cannotBeMade = 3;

/**
 * Tests that need Python environments of scripts/setup-python.mjs; `define` gets the path of each one's python. On a
 * machine that cannot have them, standard error says what is missing and the tests are skipped; with CI=true that is
 * a failure, as it is everywhere if the environments were not made yet.
 */
export function describePython<Name extends string>(
  title: string,
  names: readonly Name[],
  define: (pythons: Readonly<Record<Name, string>>) => void,
): void {
  const answers = names.map((name) => ({ name, ...where(name) }));
  const missing = answers.find(({ status }) => status !== 0);
  if (missing === undefined) {
    const pythons = Object.fromEntries(answers.map(({ name, stdout }) => [name, stdout.trim()]));
    describe(title, () => define(pythons as Record<Name, string>));
    return;
  }
  const why = `${title} not tested: ${missing.stderr.trim()}`;
  process.stderr.write(`${why}\n`);
  if (missing.status === cannotBeMade && process.env.CI !== "true") test.skip(title, () => {});
  else test(title, () => expect.fail(why));
}

function where(name: string) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--where", name], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}
