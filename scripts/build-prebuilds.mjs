// `npm run build:prebuilds`: what was built for this machine, named and stripped as it goes into the package, in
// native/prebuilds. The addon is Node-API, so one build of it serves every Node there is.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tree-hash.mjs";

const release = join(root, "native", "build", "Release");
if (!existsSync(join(release, "cudashm.node"))) fail("nothing is built yet; run: npm run build:native");

const platform = `${process.platform}-${process.arch}`;
const prebuilds = join(root, "native", "prebuilds", platform);
const cache = join(root, "node_modules", ".cache");
mkdirSync(cache, { recursive: true });
// A copy, since prebuildify strips and takes away what it finds.
const copy = mkdtempSync(join(cache, "cudashm-prebuild-"));
process.once("exit", () => rmSync(copy, { recursive: true, force: true }));
const copiedRelease = join(copy, "build", "Release");
mkdirSync(copiedRelease, { recursive: true });
copyFileSync(join(release, "cudashm.node"), join(copiedRelease, "cudashm.node"));

// `true` in place of node-gyp: it was run already.
const prebuildify = join(root, "node_modules", ".bin", "prebuildify");
const flags = ["--napi", "--tag-libc", "--strip", "--node-gyp", "true"];
run(prebuildify, "--cwd", copy, "--name", "cudashm", "--target", process.versions.node, ...flags);
rmSync(prebuilds, { recursive: true, force: true });
cpSync(join(copy, "prebuilds", platform), prebuilds, { recursive: true });

const emulated = join(prebuilds, "emulated");
mkdirSync(emulated);
run(
  "strip",
  "--strip-unneeded",
  "-o",
  join(emulated, "libcuda.so.1"),
  join(release, "emulated", "libcuda.so.1"),
);

function run(file, ...args) {
  const { status, error } = spawnSync(file, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0) fail(error ? error.message : `${file} ended with ${status}; see its message above`);
}

function fail(text) {
  process.stderr.write(`build:prebuilds: ${text}\n`);
  process.exit(1);
}
