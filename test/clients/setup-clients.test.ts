import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/setup-clients.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "cudashm-setup-clients-"));
afterAll(() => rmSync(folder, { recursive: true }));

// pkg-config then knows no library at all.
const noLibraries = { PKG_CONFIG_LIBDIR: folder, PKG_CONFIG_PATH: "" };
const libraries = ["libprotobuf-dev", "libgrpc++-dev", "libcurl4-openssl-dev"];

function run(args: readonly string[], variables: Record<string, string>) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...variables },
  });
  return { status, lines: stdout.split("\n"), stderr };
}

/** Puts an apt-get that only notes how it was called before the real one. */
function standInAptGet() {
  const calls = join(folder, "apt-get-calls");
  const file = join(folder, "apt-get");
  writeFileSync(file, `#!/bin/sh\necho "$@" >>"${calls}"\n`);
  chmodSync(file, 0o755);
  return { path: `${folder}:${process.env.PATH}`, calls: () => readFileSync(calls, "utf8") };
}

test("tells what a client lacks, by the names of Debian's packages", () => {
  const { status, lines } = run(["--missing", "cpp"], noLibraries);
  expect(status).toBe(0);
  expect(lines).toEqual(expect.arrayContaining(libraries));
  expect(run(["--missing", "curl"], { PATH: folder }).lines).toContain("curl");
});

test("an unknown client is answered with the ones there are", () => {
  const { status, stderr } = run(["--missing", "cobol"], {});
  expect(status).toBe(2);
  expect(stderr).toContain("cpp|python|curl");
});

test("says which packages to install where there is no apt-get", () => {
  const { status, stderr } = run([], { ...noLibraries, PATH: folder });
  expect(status).toBe(1);
  expect(stderr).toMatch(/no apt-get here.*libgrpc\+\+-dev/);
});

test("asks apt-get for what is missing, and does not take its word for it", () => {
  const aptGet = standInAptGet();
  const { status, stderr } = run([], { ...noLibraries, PATH: aptGet.path });
  expect(status).toBe(1);
  if (process.getuid?.() !== 0) {
    expect(stderr).toMatch(/sudo apt-get install .*libgrpc\+\+-dev/);
    return;
  }
  const [update, install] = aptGet.calls().split("\n");
  expect(update).toBe("update -q");
  expect(install?.split(" ")).toEqual(
    expect.arrayContaining(["install", "--yes", "--no-install-recommends", ...libraries]),
  );
  expect(stderr).toMatch(/installed, and yet not found: .*libgrpc\+\+-dev/);
});
