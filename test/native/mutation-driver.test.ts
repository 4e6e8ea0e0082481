import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const sources = fileURLToPath(new URL("../../native/fuzz", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "cudashm-mutation-driver-"));
const driver = join(folder, "fuzz");
afterAll(() => rmSync(folder, { recursive: true }));

// Each of its targets ends the program in another way, once its one input is the one that the variable names.
const targets = String.raw`
#include <climits>
#include <stdexcept>
#include "target.h"

bool Wanted(std::string_view input) { return input == std::getenv("END_AT"); }
void Check(std::string_view input) { CHECK(!Wanted(input)); }
void Throw(std::string_view input) { if (Wanted(input)) throw std::runtime_error("uncaught"); }
void Overflow(std::string_view input) { volatile int most = INT_MAX; if (Wanted(input)) most = most + 1; }
void Overrun(std::string_view input) {
  const std::vector<char> bytes(1);
  const volatile char* start = bytes.data();
  if (Wanted(input)) static_cast<void>(start[input.size()]);
}

Target IpcHandleTarget() { return {"check", {"check\n"}, Check}; }
Target EnvironmentTarget() { return {"exception", {"exception\n"}, Throw}; }
Target ProcessStatTarget() { return {"undefined", {"undefined\n"}, Overflow}; }
Target Crc32cTarget() { return {"address", {"address\n"}, Overrun}; }
`;

beforeAll(() => {
  const flags = ["-std=c++20", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
  const files = [join(sources, "main.cc"), "-x", "c++", "-"];
  const built = spawnSync("g++", [...flags, "-I", sources, ...files, "-o", driver], {
    encoding: "utf8",
    input: targets,
  });
  expect(built).toMatchObject({ status: 0, stderr: "" });
});

function runUntil(input: string) {
  return spawnSync(driver, ["7", "1", "0"], {
    encoding: "utf8",
    env: { ...process.env, END_AT: input, ASAN_OPTIONS: "symbolize=0" },
  });
}

test.each([
  ["check", "check failed: !Wanted(input)"],
  ["exception", "uncaught"],
  ["undefined", "signed integer overflow"],
  ["address", "heap-buffer-overflow"],
])("tells the input whatever ends the program: %s", (target, problem) => {
  const { signal, stderr } = runUntil(`${target}\n`);
  expect(signal).toBe("SIGABRT");
  expect(stderr).toContain(problem);
  const hex = Buffer.from(`${target}\n`).toString("hex");
  expect(stderr).toContain(`${target}: seed 7, run 0, input in hex:\n${hex}\n`);
});

test("tells no input where none ends the program", () => {
  const { status, stdout, stderr } = runUntil("another");
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(/^(ok \w+: 1 inputs\n){4}$/);
});
