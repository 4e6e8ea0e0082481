import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runCommand } from "../../src/cli/commands.js";
import { configRows } from "../../src/config.js";
import { commandIo } from "../helpers/command-io.js";

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const { io, written } = commandIo(args, env);
  const { code } = await runCommand(io);
  return { code, ...written() };
}

test("--help names every command and every option of the service, each with its variable", async () => {
  const { code, stdout, stderr } = await run(["--help"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  for (const name of ["serve", "allocate", "healthcheck", "emulated-driver", "doctor", "demo"]) {
    expect(stdout).toMatch(new RegExp(`^ {2}${name} +\\w`, "m"));
  }
  for (const row of configRows()) expect(stdout).toContain(`\n  ${row.flag}\n`);
  expect(stdout.replace(/\s+/g, " ")).toContain("default 8000; CUDASHM_HTTP_PORT]");
});

test.each([
  ["serve", "--allow-client-shm true|false"],
  ["allocate", "--fill BYTE|TEXT"],
  ["emulated-driver", "LD_LIBRARY_PATH"],
  ["doctor", "--timeout-secs SECONDS"],
  ["healthcheck", "--live true|false"],
  ["demo", "--driver auto|cuda|emulated"],
])("%s --help explains itself and runs nothing", async (name, fragment) => {
  for (const flag of ["--help", "-h"]) {
    const { code, stdout, stderr } = await run([name, flag]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`^Usage: cudashm ${name}`));
    expect(stdout).toContain(fragment);
  }
});

test("no line of help is wider than 110 columns", async () => {
  for (const args of [
    ["--help"],
    ["allocate", "--help"],
    ["demo", "--help"],
    ["emulated-driver", "--help"],
    ["doctor", "--help"],
    ["healthcheck", "--help"],
  ]) {
    const { stdout } = await run(args);
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
  }
});

test("--version tells the package's version", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  expect(await run(["--version"])).toEqual({ code: 0, stdout: `cudashm ${version}\n`, stderr: "" });
});

test("an unknown command is refused with code 2 and what was probably meant", async () => {
  const { code, stdout, stderr } = await run(["alocate"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain('unknown command "alocate"; did you mean allocate?');
});

test.each(["__proto__", "constructor", "toString"])(
  "%s is an unknown command like any other",
  async (name) => {
    const { code, stderr } = await run([name]);
    expect(code).toBe(2);
    expect(stderr).toContain(`unknown command "${name}"`);
  },
);

test("serve refuses wrong options with code 2 and one message that holds all of them", async () => {
  const { code, stdout, stderr } = await run(["--http-port=x", "--grpc-prot=1"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toBe(
    [
      "cudashm: the command line or environment has 2 problems:",
      '  - --http-port: expected a port from 0 to 65535, got "x"',
      "  - unknown option --grpc-prot; did you mean --grpc-port?",
      "See: cudashm serve --help",
      "",
    ].join("\n"),
  );
});

test.each([
  ["allocate", "--bytes=0", "--bytes: expected a whole number from 1 to 9007199254740991"],
  ["allocate", "--fill=256", "--fill: expected a byte (0 to 255, or 0x00 to 0xff) or a text to repeat"],
  ["allocate", "4096", 'unexpected argument "4096"'],
  ["emulated-driver", "x", 'unexpected argument "x"'],
  ["doctor", "--timeout-secs=0", "--timeout-secs: expected a whole number from 1 to 86400"],
  ["demo", "--driver=gpu", "--driver: expected one of auto, cuda, emulated"],
])("%s refuses %s with code 2", async (name, arg, problem) => {
  const { code, stdout, stderr } = await run([name, arg]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(problem);
  expect(stderr).toContain(`See: cudashm ${name} --help`);
});
