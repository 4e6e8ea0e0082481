import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { driverLibraryName, emulatedDriverFolder } from "../../dist/native/emulated-driver.js";
import type { Bench } from "../case.js";
import { bound } from "./bound.js";
import { accepts, freePort, untilUp } from "./listening.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const source = join(root, "bench", "cpp");
const build = join(root, "node_modules", ".cache", "cudashm-bench", "grpc");

/** The system packages that building the server lacks here. */
export function missingPackages(): readonly string[] {
  const script = join(root, "scripts", "setup-clients.mjs");
  const { stdout } = spawnSync(process.execPath, [script, "--missing", "cpp"], { encoding: "utf8" });
  return stdout.split("\n").filter((name) => name !== "");
}

/** Builds the server unless it is up to date, which takes a minute or two. Rejects with what the compiler says. */
export async function buildCppServer(): Promise<void> {
  const run = promisify(execFile);
  mkdirSync(build, { recursive: true });
  // A build folder that was moved is of no use to CMake until it is made anew; what it compiled stays.
  await run("cmake", ["--fresh", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release"]);
  await run("nice", ["cmake", "--build", build, "--parallel", String(availableParallelism())]);
}

/** The C++ server of cpp/, on the emulated driver. */
export class CppServer implements AsyncDisposable {
  readonly grpcPort: number;
  readonly httpPort = 0;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, grpcPort: number) {
    this.#child = child;
    this.grpcPort = grpcPort;
  }

  static async start({ cores }: Bench): Promise<CppServer> {
    const port = await freePort();
    const library = join(emulatedDriverFolder(), driverLibraryName);
    const [file, ...args] = bound(cores.server, [join(build, "grpc_server"), String(port), library]);
    const child = spawn(file, args, { stdio: ["ignore", "ignore", "inherit"] });
    await untilUp(
      () => accepts(port),
      () => child.exitCode !== null,
    );
    return new CppServer(child, port);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "close");
    this.#child.kill("SIGTERM");
    await ended;
  }
}
