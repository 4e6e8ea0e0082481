import { PassThrough } from "node:stream";
import type { CommandIo } from "../../src/cli/command.js";

/** A command's surroundings with nothing of this process in them; `written` tells what came out. */
export function commandIo(args: readonly string[], env: Record<string, string> = {}) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const stop = new AbortController();
  const io: CommandIo = {
    args,
    env,
    stdin,
    stdout,
    stderr,
    signal: stop.signal,
    self: { executable: process.execPath, args: ["dist/main.js"] },
  };
  const text = (stream: PassThrough): string => String(stream.read() ?? "");
  return { io, stdin, stop, stdout, stderr, written: () => ({ stdout: text(stdout), stderr: text(stderr) }) };
}
