import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

function start(command: string, args: readonly string[]) {
  const script = fileURLToPath(new URL(`../../scripts/${command}.mjs`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

const usages = {
  stress: `usage: npm run stress -- [--seconds N] [--seed N]
  --seconds  of load in each test (120)
  --seed     decides what is asked for, and what fails (1)
`,
  soak: `usage: npm run soak -- [--minutes N] [--every N] [--seed N]
  --minutes  of load (10)
  --every    seconds from one look to the next (10)
  --seed     decides what is asked for (1)
`,
} as const;

describe.each(["stress", "soak"] as const)("npm run %s", (command) => {
  test.each([
    ["--fast", "Unknown option '--fast'"],
    ["more", "Unexpected argument 'more'"],
    ["--seed", "Option '--seed <value>' argument missing"],
    ["--seed=0", "--seed must be a whole number above 0, at most 1000000"],
    ["--seed=1.5", "--seed must be a whole number above 0, at most 1000000"],
    ["--seed=1000001", "--seed must be a whole number above 0, at most 1000000"],
    ["--seed=many", "--seed must be a whole number above 0, at most 1000000"],
  ])("%s is refused with how it is used, and nothing is started", (argument, problem) => {
    const { status, stdout, stderr } = start(command, [argument]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr.startsWith(`${command}: ${problem}`), stderr).toBe(true);
    expect(stderr.endsWith(usages[command]), stderr).toBe(true);
  });
});

test.each([
  ["stress", "--seconds=0", "--seconds must be a number above 0, at most 200000"],
  ["stress", "--seconds=Infinity", "--seconds must be a number above 0, at most 200000"],
  ["stress", "--seconds=200001", "--seconds must be a number above 0, at most 200000"],
  ["soak", "--minutes=", "--minutes must be a number above 0, at most 100000"],
  ["soak", "--every=-1", "--every must be a number above 0, at most 100000"],
])("npm run %s refuses %s", (command, argument, problem) => {
  const { status, stderr } = start(command, [argument]);
  expect({ status, said: stderr.split("\n")[0] }).toEqual({ status: 2, said: `${command}: ${problem}` });
});
