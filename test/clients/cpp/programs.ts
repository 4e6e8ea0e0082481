import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const source = `${root}test/clients/cpp`;
const build = `${root}node_modules/.cache/cudashm-cpp`;

/** How long the first build may take: grpc++'s headers are large. */
export const buildTimeoutMs = 900_000;

/** The programs of examples/cpp and of this folder, by path. */
export const programs = {
  exporter: `${build}/examples/exporter`,
  grpcClient: `${build}/examples/grpc_client`,
  grpcAsyncClient: `${build}/examples/grpc_async_client`,
  httpClient: `${build}/examples/http_client`,
  grpcCalls: `${build}/grpc_calls`,
  httpCalls: `${build}/http_calls`,
} as const;

/** Builds what is not up to date, with progress on standard error. Rejects if a compiler does. */
export async function buildPrograms(): Promise<void> {
  mkdirSync(build, { recursive: true });
  const jobs = String(availableParallelism());
  // A build folder that was moved, or left half-made, is of no use to CMake until it is made anew.
  const configure = `cmake -S "$1" -B "$2" >"$2.log" 2>&1 || cmake --fresh -S "$1" -B "$2" >&2`;
  // Test files that need the programs run side by side: one of them builds, the others wait for the lock.
  await run("flock", [
    `${build}.lock`,
    "sh",
    "-ec",
    `{ ${configure}; }; nice cmake --build "$2" --parallel "$3" >&2`,
    "sh",
    source,
    build,
    jobs,
  ]);
}

async function run(file: string, args: readonly string[]): Promise<void> {
  const child = spawn(file, args, { stdio: ["ignore", "ignore", "inherit"] });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`the C++ clients could not be built; see the message above`);
}
