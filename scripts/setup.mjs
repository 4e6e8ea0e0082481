// Brings a clone to the point where it runs: packages from the lock, the native parts, dist/. Needs nothing but
// Node, npm and a C++ compiler, does only what its inputs say is out of date, and shows what it does.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { withSetupLock } from "./setup-lock.mjs";
import { root, treeHash } from "./tree-hash.mjs";

const stamps = join(root, "node_modules", ".cache", "cudashm-setup");
const bin = (name) => join(root, "node_modules", ".bin", name);

const steps = [
  {
    name: "packages",
    doing: "installing packages from package-lock.json",
    inputs: ["package-lock.json"],
    output: "node_modules/typescript",
    command: ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
    onFailure: "npm could not install the packages; see its message above.",
  },
  {
    name: "native",
    doing: "building the native addon and the emulated driver",
    inputs: ["native/binding.gyp", "native/src", "native/emulated", "package-lock.json"],
    output: "native/build/Release/cudashm.node",
    command: [bin("node-gyp"), "-C", "native", "rebuild", "--jobs=max", "--loglevel=error"],
    onFailure:
      "The native build failed. It needs a C++20 compiler, make and Python 3 (Debian: apt-get install g++ make python3).",
  },
  {
    name: "dist",
    doing: "compiling TypeScript",
    inputs: ["src", "tsconfig.json", "tsconfig.build.json", "package-lock.json"],
    output: "dist/main.js",
    command: [bin("tsc"), "-p", "tsconfig.build.json"],
    before: () => rmSync(join(root, "dist"), { recursive: true, force: true }),
    onFailure: "The TypeScript build failed; see the compiler's message above.",
  },
];

requireNode20();
await withSetupLock(() => {
  for (const step of steps) bring(step);
});

function bring(step) {
  const wanted = `${process.versions.modules} ${process.arch} ${treeHash(step.inputs)}`;
  const stamp = join(stamps, step.name);
  if (existsSync(join(root, step.output)) && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted)
    return;

  process.stderr.write(`setup: ${step.doing} ...\n`);
  const started = performance.now();
  rmSync(stamp, { force: true });
  step.before?.();
  const [file, ...args] = step.command;
  // stdout belongs to the command that follows; progress is for people.
  const { status, error } = spawnSync(file, args, {
    cwd: root,
    stdio: ["ignore", 2, 2],
    env: buildEnvironment(),
  });
  if (status !== 0) {
    process.stderr.write(`setup: ${error ? `${error.message}. ` : ""}${step.onFailure}\n`);
    process.exit(1);
  }
  mkdirSync(stamps, { recursive: true });
  writeFileSync(stamp, wanted);
  process.stderr.write(`setup: ${step.doing} took ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
}

// node-gyp downloads Node's headers unless told where they are; most installations have them beside the binary.
function buildEnvironment() {
  const prefix = dirname(dirname(process.execPath));
  const headers = existsSync(join(prefix, "include", "node", "node_api.h"));
  return headers ? { npm_config_nodedir: prefix, ...process.env } : process.env;
}

function requireNode20() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 11)) return;
  process.stderr.write(`setup: cudashm needs Node 20.11 or newer; this is ${process.version}.\n`);
  process.exit(1);
}
