import { expect, test } from "vitest";
import { UsageError } from "../../src/config/usage-error.js";
import { type Config, loadConfig } from "../../src/config.js";

const load = (args: string[], env: Record<string, string> = {}): Config => loadConfig(args, env).config;

function problems(args: string[]): readonly string[] {
  try {
    load(args);
  } catch (error) {
    if (error instanceof UsageError) return error.problems;
    throw error;
  }
  return [];
}

test("with nothing given, it is as Triton has it: everyone's regions are everyone's, and end with the service", () => {
  expect(load([])).toMatchObject({
    access: "shared",
    unregisterAll: "all",
    stateFile: null,
    adoptUnverified: false,
    orphanGraceSecs: 30,
  });
});

test("each can be given, on the command line and as a variable", () => {
  const given = {
    access: "owner",
    unregisterAll: "own",
    stateFile: "/var/lib/cudashm/state",
    adoptUnverified: true,
    orphanGraceSecs: 0,
  };
  const args = [
    "--access=owner",
    "--unregister-all=own",
    "--state-file=/var/lib/cudashm/state",
    "--adopt-unverified",
    "--orphan-grace-secs=0",
  ];
  expect(load(args)).toMatchObject(given);
  const env = {
    CUDASHM_ACCESS: "owner",
    CUDASHM_UNREGISTER_ALL: "own",
    CUDASHM_STATE_FILE: "/var/lib/cudashm/state",
    CUDASHM_ADOPT_UNVERIFIED: "true",
    CUDASHM_ORPHAN_GRACE_SECS: "0",
  };
  expect(load([], env)).toMatchObject(given);
});

test.each([
  ["--access=private", "--access: expected one of shared, owner, got "],
  ["--unregister-all=mine", "--unregister-all: expected one of all, own, none, got "],
  ["--orphan-grace-secs=86401", "--orphan-grace-secs: expected a whole number from 0 to 86400, got "],
  ["--state-file=", "--state-file: expected some text, got "],
])("%s is refused", (arg, problem) => {
  expect(problems([arg])).toEqual([expect.stringContaining(problem)]);
});

test("to adopt without proof there must be something to adopt from", () => {
  expect(problems(["--adopt-unverified"])).toEqual([
    "--adopt-unverified is for the regions of a --state-file: give one, or drop it",
  ]);
});
