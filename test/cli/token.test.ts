import { expect, test } from "vitest";
import { runCommand } from "../../src/cli/commands.js";
import { Principals } from "../../src/core/principals.js";
import { commandIo } from "../helpers/command-io.js";

test.each([
  [["alice"], false],
  [["alice", "--admin"], true],
  [["--admin", "alice"], true],
])("token %j prints a line for the file, and aside from it the token", async (args, isAdmin) => {
  const { io, written } = commandIo(["token", ...args]);
  expect(await runCommand(io)).toEqual({ code: 0 });
  const { stdout, stderr } = written();
  const [token] = stderr.split("\n");
  const principals = Principals.parse(stdout);
  if (!(principals instanceof Principals)) throw new Error(principals.join("\n"));
  expect(principals.authenticate({ header: () => `Bearer ${token}` })).toEqual({
    name: "alice",
    isAdmin,
  });
  expect(token?.length).toBeGreaterThanOrEqual(43);

  const another = commandIo(["token", ...args]);
  await runCommand(another.io);
  expect(another.written().stderr).not.toBe(stderr);
});

test.each([
  [[]],
  [["a", "b"]],
  [["anonymous"]],
  [["a b"]],
  [["a: b"]],
  [["a\nb"]],
  [["--admin"]],
  [["a", "--administrator"]],
  [["--administrator"]],
])("token %j is refused, and makes none", async (args) => {
  const { io, written } = commandIo(["token", ...args]);
  expect(await runCommand(io)).toEqual({ code: 2 });
  expect(written()).toEqual({ stdout: "", stderr: expect.stringMatching(/^cudashm: /) });
});
