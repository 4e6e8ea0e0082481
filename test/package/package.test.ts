import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ExporterProcess } from "../../src/cli/exporter-process.js";
import { LineProcess } from "../../src/cli/line-process.js";
import { ServiceProcess } from "../../src/cli/service-process.js";
import { region, request } from "../helpers/http.js";
import { inferenceClient } from "../helpers/inference-client.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "cudashm-package-"));
const bin = join(folder, "bin");
const consumer = join(folder, "consumer");
const installed = join(consumer, "node_modules", "cudashm");
let tarball: string;

/** An environment whose PATH has Node, npm and a shell, and nothing that compiles. */
const env = { ...process.env, PATH: bin, CC: undefined, CXX: undefined };

beforeAll(async () => {
  makeBin();
  // What `npm pack` runs first; the setup before it was run when these tests began.
  execFileSync(process.execPath, ["scripts/build-prebuilds.mjs"], { cwd: root, stdio: "inherit" });
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const [packed] = JSON.parse(execFileSync("npm", pack, { cwd: root, encoding: "utf8" }));
  tarball = join(folder, packed.filename);
  cpSync(join(root, "test", "package", "consumer"), consumer, { recursive: true });
  const packaging = readFileSync(join(root, "docs", "packaging.md"), "utf8");
  writeFileSync(join(consumer, "packaging.ts"), /```ts\n([\s\S]+?)```/.exec(packaging)?.[1] ?? "");
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  execFileSync("npm", ["install", ...flags, tarball], { cwd: consumer, env, stdio: "inherit" });
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true }));

function makeBin(): void {
  mkdirSync(bin);
  const node = dirname(process.execPath);
  for (const name of ["node", "npm", "npx"]) {
    const there = join(node, name);
    symlinkSync(existsSync(there) ? there : which(name), join(bin, name));
  }
  for (const name of ["sh", "env"]) symlinkSync(which(name), join(bin, name));
}

function which(name: string): string {
  return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
}

/** Runs the installed command to its end. */
function cudashm(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync(join(bin, "npx"), ["--no-install", "cudashm", ...args], {
    cwd: consumer,
    env: { ...env, ...variables },
    encoding: "utf8",
    input: "",
  });
  return { status, stdout, stderr };
}

test("no compiler was in reach of the installation", () => {
  for (const tool of ["cc", "gcc", "g++", "make", "python3"]) {
    expect(spawnSync("sh", ["-c", `command -v ${tool}`], { env }).status, tool).not.toBe(0);
  }
});

test("the package holds what runs, what describes it, and no sources", () => {
  const files = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(installed.length + 1));
  const others = files.filter((file) => !/^dist\/.+\.(js|d\.ts)(\.map)?$/.test(file));
  expect(others.sort()).toEqual([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    `native/prebuilds/linux-${process.arch}/cudashm.glibc.node`,
    `native/prebuilds/linux-${process.arch}/emulated/libcuda.so.1`,
    "package.json",
    "proto/cudashm/v1/registry.proto",
    "proto/grpc/health/v1/health.proto",
    "proto/inference/grpc_service.proto",
  ]);
});

test("publint has nothing to say about the package", () => {
  const publint = join(root, "node_modules", ".bin", "publint");
  const { status, stdout, stderr } = spawnSync(publint, ["run", "--strict", tarball], { encoding: "utf8" });
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("All good!");
});

test("nothing of the package runs when it is installed", () => {
  const { scripts } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  expect(Object.keys(scripts)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/^(pre|post)?install$/)]),
  );
});

test("npx cudashm tells the version", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  expect(cudashm(["--version"])).toEqual({ status: 0, stdout: `cudashm ${version}\n`, stderr: "" });
});

test("an exporter of the package registers with a service of the package", async () => {
  const self = { executable: process.execPath, args: [join(installed, "dist", "main.js")] };
  await using service = await ServiceProcess.start(self, ["--driver=emulated", "--allow-contents"], env);
  await using exporter = await ExporterProcess.start(self, ["--driver=emulated", "--fill=5"], env);
  const registered = await request("POST", `${service.httpUrl}${region("r", "register")}`, exporter.bodyLine);
  expect(registered.status).toBe(200);
  const contents = await fetch(`${service.httpUrl}/v1/regions/r/contents`);
  expect(Buffer.from(await contents.arrayBuffer())).toEqual(Buffer.alloc(4096, 5));
  expect(await exporter.end()).toBe(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

test("an application mounts both faces in servers of its own, with types, as the documentation does", async () => {
  mkdirSync(join(consumer, "node_modules", "@types"), { recursive: true });
  for (const types of ["node", "../undici-types"]) {
    const to = join(consumer, "node_modules", "@types", types);
    if (!existsSync(to)) symlinkSync(join(root, "node_modules", "@types", types), to);
  }
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const compiled = spawnSync(tsc, ["-p", consumer], { encoding: "utf8" });
  expect(compiled).toMatchObject({ status: 0, stdout: "", stderr: "" });

  await using application = new LineProcess(process.execPath, [join(consumer, "mount.js")], env);
  const told = JSON.parse(await application.nextLine());
  expect(told).toEqual({
    mine: "mine",
    ready: 200,
    metadata: {
      name: "cudashm",
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      extensions: ["cuda_shared_memory"],
      cuda_driver: "emulated",
      instance_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      epoch: 1,
    },
    regions: [],
    refused: "NOT_FOUND",
    grpcPort: expect.any(Number),
    ownHttp: 200,
    ownGrpcPort: expect.any(Number),
  });
  for (const port of [told.grpcPort, told.ownGrpcPort]) {
    using grpc = inferenceClient(`127.0.0.1:${port}`);
    expect(await grpc.call("ServerReady", {})).toMatchObject({ ready: true });
  }
  expect(await application.endInput()).toEqual({ code: 0, signal: null });
  expect(application.errorText).toBe("");
});

test("on musl the command says that it needs glibc", () => {
  const { status, stdout, stderr } = cudashm(["allocate", "--driver=emulated"], { LIBC: "musl" });
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toBe(
    "cudashm: cannot allocate: the native addon needs glibc, as NVIDIA's driver does, and this system's C library is musl: use a system with glibc, such as the image node:20-bookworm-slim in place of node:20-alpine\n",
  );
});

test("on an older C library the command says which one it needs", () => {
  const addon = join(installed, "native", "prebuilds", `linux-${process.arch}`, "cudashm.glibc.node");
  const kept = join(folder, basename(addon));
  copyFileSync(addon, kept);
  try {
    // No system has it: the loader refuses it just as an old one refuses what is new.
    const newer = readFileSync(addon, "latin1").replace(/\0GLIBC_2\.(\d\d)\0/, "\0GLIBC_9.$1\0");
    writeFileSync(addon, newer, "latin1");
    const { status, stderr } = cudashm(["allocate", "--driver=emulated"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /the native addon needs GLIBC_9\.\d\d, which this system's C or C\+\+ library is too old for/,
    );
  } finally {
    copyFileSync(kept, addon);
    chmodSync(addon, 0o755);
  }
});
