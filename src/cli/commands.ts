import { UsageError } from "../config/usage-error.js";
import { nearest } from "../core/nearest.js";
import { packageVersion } from "../version.js";
import type { Command, CommandIo, CommandResult } from "./command.js";

interface CommandEntry {
  readonly summary: string;
  load(): Promise<Command>;
}

// Loaded on demand: the service's start does not wait for the demo's imports.
const commands: Readonly<Record<string, CommandEntry>> = {
  serve: {
    summary: "run the service; what cudashm does when given no command",
    load: async () => (await import("./serve.js")).serve,
  },
  allocate: {
    summary: "allocate GPU memory, print a body that registers it, and hold the memory",
    load: async () => (await import("./allocate.js")).allocate,
  },
  healthcheck: {
    summary: "ask a service on this machine whether it is ready",
    load: async () => (await import("./healthcheck.js")).healthcheck,
  },
  token: {
    summary: "make a token for --token-file",
    load: async () => (await import("./token.js")).token,
  },
  "emulated-driver": {
    summary: "print the folder that holds the emulated libcuda.so.1",
    load: async () => (await import("./emulated-driver.js")).emulatedDriver,
  },
  doctor: {
    summary: "say whether memory can be shared on this machine, and what to do where it cannot",
    load: async () => (await import("./doctor.js")).doctor,
  },
  demo: {
    summary: "show two processes sharing memory through the service, step by step",
    load: async () => (await import("./demo.js")).demo,
  },
};

/** Runs the command that `io.args` names, `serve` if none. Never rejects for a mistake of the caller's. */
export async function runCommand(io: CommandIo): Promise<CommandResult> {
  const [first, ...rest] = io.args;
  if (first === "--help" || first === "-h") {
    io.stdout.write(await overview());
    return { code: 0 };
  }
  if (first === "--version") {
    io.stdout.write(`cudashm ${packageVersion()}\n`);
    return { code: 0 };
  }
  const isNamed = first !== undefined && !first.startsWith("-");
  const name = isNamed ? first : "serve";
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) {
    const meant = nearest(name, Object.keys(commands));
    const problem = `unknown command ${JSON.stringify(name)}${meant === null ? "" : `; did you mean ${meant}?`}`;
    return refuse(io, new UsageError([problem]), "cudashm --help");
  }
  const command = await entry.load();
  const args = isNamed ? rest : io.args;
  if (args.includes("--help") || args.includes("-h")) {
    io.stdout.write(command.help());
    return { code: 0 };
  }
  try {
    return await command.run({ ...io, args });
  } catch (error) {
    if (error instanceof UsageError) return refuse(io, error, `cudashm ${name} --help`);
    throw error;
  }
}

function refuse(io: CommandIo, error: UsageError, helpCommand: string): CommandResult {
  io.stderr.write(error.toMessage(helpCommand));
  return { code: 2 };
}

async function overview(): Promise<string> {
  const list = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}\n`);
  const serve = await commands.serve?.load();
  return `cudashm: Triton's CUDA shared memory API as a service of its own, over gRPC and HTTP.

Usage: cudashm [command] [options]

Commands:
${list.join("")}
"cudashm <command> --help" tells the options of one, "cudashm --version" the version.

${serve?.help()}`;
}
