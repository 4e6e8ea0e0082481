import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { library, repository, run } from "./emulated-driver.js";

const text = readFileSync(`${repository}docs/emulated-driver.md`, "utf8");
const folder = mkdtempSync(join(tmpdir(), "cudashm-emulated-docs-"));
afterAll(() => rmSync(folder, { recursive: true }));

function example(language: string): string {
  const [, code] = text.match(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``)) ?? [];
  if (code === undefined) throw new Error(`docs/emulated-driver.md has no ${language} example`);
  return code;
}

describe("docs/emulated-driver.md", () => {
  it("has a Python example in which two processes share memory over ctypes", async () => {
    const script = join(folder, "share.py");
    writeFileSync(script, example("python"));
    const { stdout } = await run("python3", [script, library]);
    expect(stdout).toBe("importer reads: from exporter\nexporter reads: from importer\n");
  });

  it("has a C example that compiles without warnings and copies through the driver", async () => {
    const program = join(folder, "example");
    writeFileSync(`${program}.c`, example("c"));
    await run("cc", ["-Wall", "-Wextra", "-Werror", "-o", program, `${program}.c`, "-ldl"]);
    const { stdout } = await run(program, [library]);
    expect(stdout).toBe("through a GPU?\n");
  });

  it("has every variable that the driver knows, and no other", async () => {
    const documented = [...text.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name]) => name).sort();
    const script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cuInit(0))";
    const { stdout, stderr } = await run("python3", ["-c", script, library], {
      env: { PATH: process.env.PATH, CUDASHM_EMULATED_DEVICES: "2", CUDASHM_EMULATED_NO_IPC: "yes" },
    });
    const known = stderr
      .match(/CUDASHM_EMULATED_\{(.*)\}/)?.[1]
      ?.split(", ")
      .sort();
    expect(known).toEqual(documented);
    expect(stderr).toContain("CUDASHM_EMULATED_NO_IPC: 'yes' cannot be used; expected 0 or 1");
    expect(stdout).toBe("1\n");
  });
});
