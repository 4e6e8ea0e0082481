import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { emulatedDriverFolder } from "../../../src/native/emulated-driver.js";
import { testDriver } from "../../helpers/cudashm.js";

const folder = fileURLToPath(new URL(".", import.meta.url));

export interface PythonEnd {
  readonly code: number | null;
  /** Standard output and standard error as they came. */
  readonly output: string;
}

/** Runs Python, which finds the driver of the tests as libcuda.so.1, to its end. */
export async function runPython(
  python: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<PythonEnd> {
  const driver = testDriver === "emulated" ? { LD_LIBRARY_PATH: emulatedDriverFolder() } : {};
  const child = spawn(python, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...driver, ...variables },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

/** Runs pytest on one file; `tally` is the last line it prints, without the time it took. */
export async function runPytest(
  python: string,
  file: string,
  variables: Readonly<Record<string, string>>,
): Promise<PythonEnd & { readonly tally: string }> {
  const end = await runPython(python, ["-m", "pytest", file], variables);
  const tally = end.output.trimEnd().split("\n").at(-1)?.split(" in ")[0] ?? "";
  return { ...end, tally };
}
