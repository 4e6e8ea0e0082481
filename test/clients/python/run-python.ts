import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { emulatedDriverFolder } from "../../../src/native/emulated-driver.js";
import { testDriver } from "../../helpers/cudashm.js";

const folder = fileURLToPath(new URL(".", import.meta.url));

// Compiling the clients' packages takes seconds, so it is done once, and nothing is written beside the sources.
const bytecode = {
  PYTHONDONTWRITEBYTECODE: "",
  PYTHONPYCACHEPREFIX: fileURLToPath(new URL("../../../.venv/bytecode", import.meta.url)),
};

export interface PythonEnd {
  readonly code: number | null;
  /** Standard output and standard error as they came. */
  readonly output: string;
}

/** Runs Python to its end with `input` on its standard input. It finds the driver of the tests as libcuda.so.1. */
export async function runPython(
  python: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  input = "",
): Promise<PythonEnd> {
  const driver = testDriver === "emulated" ? { LD_LIBRARY_PATH: emulatedDriverFolder() } : {};
  const child = spawn(python, args, {
    cwd: folder,
    stdio: "pipe",
    env: { ...process.env, ...bytecode, ...driver, ...variables },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

export interface PytestEnd extends PythonEnd {
  /** What became of each test, such as `PASSED`. */
  readonly results: ReadonlyArray<{ readonly file: string; readonly name: string; readonly result: string }>;
}

/** Runs every test_*.py here in one process: starting the clients takes longer than most of the tests. */
export async function runPytest(
  python: string,
  variables: Readonly<Record<string, string>>,
): Promise<PytestEnd> {
  const end = await runPython(python, ["-m", "pytest", "-v"], variables);
  const lines = end.output.matchAll(/^(test_\w+\.py)::(.+) ([A-Z]+) +\[ *\d+%\]$/gm);
  const results = [...lines].map(([, file = "", name = "", result = ""]) => ({ file, name, result }));
  return { ...end, results };
}
