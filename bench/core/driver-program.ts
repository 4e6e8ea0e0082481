import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { driverLibraryName, emulatedDriverFolder } from "../../dist/native/emulated-driver.js";
import type { Cores } from "../machine.js";
import { bound } from "../processes/bound.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const source = join(root, "bench", "cpp", "driver_pairs.cc");
const program = join(root, "node_modules", ".cache", "cudashm-bench", "driver_pairs");

/** Compiles the program that calls the driver from C++, unless it is up to date. Throws if there is no compiler. */
export function buildDriverProgram(): void {
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return;
  mkdirSync(join(program, ".."), { recursive: true });
  execFileSync(process.env.CXX ?? "g++", ["-std=c++20", "-O2", "-o", program, source, "-ldl"]);
}

/** Microseconds that the driver itself takes for an open and a close of the handle. */
export async function driverPairMicros(cores: Cores, seconds: number, handle: Buffer): Promise<number> {
  const library = join(emulatedDriverFolder(), driverLibraryName);
  const [file, ...args] = bound(cores.server, [program, library, String(seconds), handle.toString("hex")]);
  const { stdout } = await promisify(execFile)(file, args);
  return Number(stdout);
}
