import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/fuzz.mjs", import.meta.url));
const mutationDriver = "-s -C native/fuzz check SECONDS=5 SEED=7";
const libFuzzer = (compiler: string) => `-s -C native/fuzz -k libfuzzer CLANG=${compiler} SECONDS=5 SEED=7`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-fuzz-script-"));
  command("make", noteCall());
});
afterEach(() => rmSync(folder, { recursive: true }));

function command(name: string, body: string) {
  writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
}

const noteCall = () => `echo "$@" >>"${join(folder, "calls")}"`;

function fuzzNative() {
  const { status, stderr } = spawnSync(
    process.execPath,
    [script, "native", "--seconds", "5", "--seed", "7"],
    { encoding: "utf8", env: { ...process.env, PATH: folder } },
  );
  return { status, stderr, calls: readFileSync(join(folder, "calls"), "utf8").trimEnd().split("\n") };
}

test("says which packages have libFuzzer where no clang++ has it, and tries the rest", () => {
  command("clang++", "exit 1");
  const { status, stderr, calls } = fuzzNative();
  expect(calls).toEqual([mutationDriver]);
  expect(stderr).toMatch(/^fuzz: libFuzzer is left out: .*apt-get install clang-14 libclang-rt-14-dev\)\n$/);
  expect(status).toBe(0);
});

test.each(["clang++", "clang++-14", "clang++-19"])("tries libFuzzer too with %s", (compiler) => {
  command(compiler, "exit 0");
  expect(fuzzNative()).toEqual({ status: 0, stderr: "", calls: [mutationDriver, libFuzzer(compiler)] });
});

test("passes over a clang++ that lacks libFuzzer", () => {
  command("clang++", "exit 1");
  command("clang++-15", "exit 0");
  expect(fuzzNative().calls).toEqual([mutationDriver, libFuzzer("clang++-15")]);
});

test("fails where libFuzzer does", () => {
  command("clang++", "exit 0");
  command("make", `${noteCall()}; case "$*" in *libfuzzer*) exit 2 ;; esac`);
  expect(fuzzNative()).toMatchObject({ status: 1, calls: [mutationDriver, libFuzzer("clang++")] });
});
