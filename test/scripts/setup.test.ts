import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const scripts = fileURLToPath(new URL("../../scripts", import.meta.url));
let clone: string;

// A clone with the scripts as they are, and commands that note what they were called for and leave what the real
// ones would: building for real takes minutes, and would build over what the other tests run.
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "cudashm-setup-"));
  cpSync(scripts, join(clone, "scripts"), { recursive: true });
  for (const file of [
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "src/main.ts",
    "native/binding.gyp",
    "native/src/addon.cc",
    "native/emulated/ipc.cc",
  ]) {
    write(file, "");
  }
  command("node-gyp", "mkdir -p native/build/Release; touch native/build/Release/cudashm.node");
  command("tsc", "mkdir -p dist; touch dist/main.js");
  command(
    "npm",
    "mkdir -p node_modules/typescript node_modules/.bin; cp commands/node-gyp commands/tsc node_modules/.bin",
  );
});
afterEach(() => rmSync(clone, { recursive: true }));

function write(file: string, text: string): void {
  mkdirSync(dirname(join(clone, file)), { recursive: true });
  writeFileSync(join(clone, file), text);
}

function command(name: string, does: string): void {
  write(`commands/${name}`, `#!/bin/sh\necho "${name} $1" >>calls\n${does}\n`);
  chmodSync(join(clone, "commands", name), 0o755);
}

/** Runs the setup; tells what it called, what it said, and how it ended. */
function setUp() {
  rmSync(join(clone, "calls"), { force: true });
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(clone, "scripts", "setup.mjs")], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(clone, "commands")}:${process.env.PATH}` },
  });
  const calls = existsSync(join(clone, "calls")) ? readFileSync(join(clone, "calls"), "utf8") : "";
  return { status, stdout, stderr, calls: calls.split("\n").filter((call) => call !== "") };
}

test("the first setup installs from the lock and builds both parts, and says what it is doing", () => {
  const { status, stdout, stderr, calls } = setUp();
  expect({ status, stdout, calls }).toEqual({
    status: 0,
    stdout: "",
    calls: ["npm ci", "node-gyp -C", "tsc -p"],
  });
  for (const doing of ["installing packages", "building the native addon", "compiling TypeScript"]) {
    expect(stderr).toContain(`setup: ${doing}`);
  }
});

test("the next one does and says nothing", () => {
  setUp();
  expect(setUp()).toEqual({ status: 0, stdout: "", stderr: "", calls: [] });
});

test.each([
  ["src/main.ts", ["tsc -p"]],
  ["native/src/addon.cc", ["node-gyp -C"]],
  ["native/emulated/ipc.cc", ["node-gyp -C"]],
  ["package-lock.json", ["npm ci", "node-gyp -C", "tsc -p"]],
])("after a change of %s it does again what depends on it", (file, expected) => {
  setUp();
  appendFileSync(join(clone, file), "changed");
  expect(setUp().calls).toEqual(expected);
  expect(setUp().calls).toEqual([]);
});

test("what was deleted is built again", () => {
  setUp();
  rmSync(join(clone, "dist"), { recursive: true });
  expect(setUp().calls).toEqual(["tsc -p"]);
});

test("a build that fails ends with code 1 and what it needs, leaves nothing old to run, and is tried again", () => {
  setUp();
  const works = readFileSync(join(clone, "node_modules/.bin/tsc"), "utf8");
  writeFileSync(join(clone, "node_modules/.bin/tsc"), "#!/bin/sh\nexit 2\n");
  appendFileSync(join(clone, "src/main.ts"), "wrong");
  const failed = setUp();
  expect(failed.status).toBe(1);
  expect(failed.stderr).toContain("setup: The TypeScript build failed");
  expect(existsSync(join(clone, "dist/main.js"))).toBe(false);
  writeFileSync(join(clone, "node_modules/.bin/tsc"), works);
  expect(setUp()).toMatchObject({ status: 0, calls: ["tsc -p"] });
});

test("a failed native build names the packages that it needs", () => {
  command("node-gyp", "exit 1");
  const { status, stderr } = setUp();
  expect(status).toBe(1);
  expect(stderr).toContain("apt-get install g++ make python3");
});
