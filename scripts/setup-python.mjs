// Makes the Python virtual environments that the tests need, in .venv/, from requirements files that pin every
// package. Names choose some of them; without names it makes all. What is made already is kept.
// `--where NAME` makes nothing and prints that environment's python; it ends with 1 if the environment has to be
// made first, and with 3 if it cannot be made on this machine.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { withSetupLock } from "./setup-lock.mjs";
import { root, treeHash } from "./tree-hash.mjs";

/** What each environment is for, where its pins are, and the Pythons that all of them have wheels for. */
const environments = {
  clients: {
    purpose: "the official Python clients",
    requirements: "test/clients/python/requirements-clients.txt",
    pythons: [11, 13],
  },
  "cuda-newest": {
    purpose: "the newest cuda-bindings",
    requirements: "test/clients/python/requirements-cuda-newest.txt",
    pythons: [11, 13],
  },
  schemathesis: {
    purpose: "the HTTP contract",
    requirements: "test/clients/contract/requirements.txt",
    pythons: [11, 13],
  },
  prometheus: {
    purpose: "the metrics, with Prometheus's own parser",
    requirements: "test/metrics/requirements.txt",
    pythons: [11, 13],
  },
  manifests: {
    purpose: "the compose file and the Kubernetes manifests",
    requirements: "test/deploy/requirements.txt",
    pythons: [11, 13],
  },
};

const args = process.argv.slice(2);
const names = args.filter((arg) => arg !== "--where");
for (const name of names) {
  if (!(name in environments)) fail(2, `no environment ${name}; there are ${Object.keys(environments)}`);
}
if (args.includes("--where")) where(names[0]);
else await withSetupLock(() => (names.length > 0 ? names : Object.keys(environments)).forEach(make));

function make(name) {
  const { purpose, requirements, pythons } = environments[name];
  const python = findPython(pythons);
  if (python === null) {
    const inCi = process.env.CI === "true";
    tell(`${inCi ? "" : "skipped: "}the tests of ${purpose} cannot run: ${howToGetPython(pythons)}`);
    if (inCi) process.exitCode = 1;
    return;
  }
  const wanted = stampOf(name, python);
  if (isMade(name, wanted)) return;

  tell(`installing ${purpose} into .venv/${name} ...`);
  const started = performance.now();
  const folder = join(root, ".venv", name);
  rmSync(folder, { recursive: true, force: true });
  run(python.command, "-m", "venv", folder);
  const pip = [pythonOf(name), "-m", "pip", "--disable-pip-version-check"];
  // Everything is pinned, so pip has nothing to choose; `check` then tells whether the pins fit together.
  run(...pip, "install", "--no-deps", "--only-binary=:all:", "--no-compile", "-r", join(root, requirements));
  run(...pip, "check");
  // Written last: an interrupted installation has no stamp, and is made anew.
  writeFileSync(stampFile(name), wanted);
  tell(`installing ${purpose} took ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

function where(name) {
  const { purpose, pythons } = environments[name];
  const python = findPython(pythons);
  if (python === null) fail(3, `${purpose}: ${howToGetPython(pythons)}`);
  if (!isMade(name, stampOf(name, python))) {
    fail(
      1,
      `${purpose}: .venv/${name} is missing or out of date; run: node scripts/setup-python.mjs ${name}`,
    );
  }
  process.stdout.write(`${pythonOf(name)}\n`);
}

/** The first Python of the right version that can make virtual environments, or null. */
function findPython([oldest, newest]) {
  const numbered = Array.from({ length: newest - oldest + 1 }, (_, i) => `python3.${newest - i}`);
  for (const command of ["python3", ...numbered]) {
    const probe = "import ensurepip, sys, venv; print(sys.version_info.minor, sys.executable, sys.version)";
    const { status, stdout } = spawnSync(command, ["-c", probe], { encoding: "utf8" });
    const minor = status === 0 ? Number.parseInt(stdout, 10) : Number.NaN;
    if (minor >= oldest && minor <= newest) return { command, description: stdout.trim() };
  }
  return null;
}

function howToGetPython([oldest, newest]) {
  return `they need Python 3.${oldest} to 3.${newest} (a newer one has no wheels yet) with its venv module; run: npm run setup:clients`;
}

function stampOf(name, python) {
  return `${python.description}\n${treeHash([environments[name].requirements])}\n`;
}

function isMade(name, wanted) {
  return existsSync(stampFile(name)) && readFileSync(stampFile(name), "utf8") === wanted;
}

function stampFile(name) {
  return join(root, ".venv", name, "setup-stamp");
}

function pythonOf(name) {
  return join(root, ".venv", name, "bin", "python");
}

// Progress is for people: standard output belongs to the command that follows.
function run(file, ...rest) {
  const { status, error } = spawnSync(file, rest, { cwd: root, stdio: ["ignore", 2, 2] });
  if (status === 0) return;
  const what = [relative(root, file) || file, ...rest.slice(0, 3)].join(" ");
  fail(1, `${error ? error.message : `${what} failed; see its message above`}`);
}

function tell(text) {
  process.stderr.write(`setup: ${text}\n`);
}

function fail(code, text) {
  tell(text);
  process.exit(code);
}
