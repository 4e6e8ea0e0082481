import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const names = ["clang++", ...[19, 18, 17, 16, 15, 14].map((version) => `clang++-${version}`)];
const program = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, __SIZE_TYPE__) { return 0; }';

/** The name of a clang++ that links with libFuzzer, which Debian keeps in a package of its own; null if there is none. */
export function libFuzzerCompiler() {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-libfuzzer-"));
  const args = ["-fsanitize=fuzzer,address,undefined", "-x", "c++", "-", "-o", join(folder, "empty")];
  try {
    return names.find((name) => spawnSync(name, args, { input: program }).status === 0) ?? null;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
