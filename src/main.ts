#!/usr/bin/env node
import { constants } from "node:os";
import { runCommand } from "./cli/commands.js";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // The second one is from somebody who will not wait.
    if (stop.signal.aborted) process.exit(128 + constants.signals[signal]);
    stop.abort();
  });
}

const script = process.argv[1] ?? "";
const result = await runCommand({
  args: process.argv.slice(2),
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: stop.signal,
  self: { executable: process.execPath, args: [script] },
});
process.exitCode = result.code;
if (result.stuck) process.exit(result.code);
