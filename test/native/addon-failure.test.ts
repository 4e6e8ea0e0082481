import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { addonFailureText } from "../../src/native/addon-failure.js";

/** The `native` folder of a clone, or of an installed package. */
function nativeFolder(...entries: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-native-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const entry of entries) {
    if (entry.endsWith("/")) mkdirSync(join(folder, entry), { recursive: true });
    else writeFileSync(join(folder, entry), "");
  }
  return folder;
}

const noBuild = (libc: string) =>
  new Error(
    `No native build was found for platform=linux arch=x64 runtime=node abi=115 uv=1 libc=${libc} node=20.11.0\n    loaded from: /x\n`,
  );

test.each([
  ["node-gyp-build finds none for musl", noBuild("musl")],
  [
    "musl's loader has no glibc loader",
    new Error("Error loading shared library ld-linux-x86-64.so.2: No such file or directory"),
  ],
])("musl is told as the cause where %s", (_what, cause) => {
  expect(addonFailureText(cause, nativeFolder("prebuilds/linux-x64/"))).toMatch(
    /^the native addon needs glibc, .* musl: use a system with glibc/,
  );
});

test.each(["GLIBC_2.34", "GLIBCXX_3.4.30", "CXXABI_1.3.13"])(
  "a system too old for %s is told so",
  (version) => {
    const cause = new Error(
      `/lib/x86_64-linux-gnu/libc.so.6: version \`${version}' not found (required by /x.node)`,
    );
    expect(addonFailureText(cause, nativeFolder("prebuilds/linux-x64/"))).toBe(
      `the native addon needs ${version}, which this system's C or C++ library is too old for: use Debian 12, Ubuntu 22.04 or newer, or build the package on this system as docs/packaging.md says`,
    );
  },
);

test("a package without a build for this platform lists those that it has", () => {
  const folder = nativeFolder("prebuilds/linux-s390x/", "prebuilds/linux-ppc64/");
  expect(addonFailureText(noBuild("glibc"), folder)).toContain(
    `no native addon for ${process.platform}-${process.arch}, only for: linux-ppc64, linux-s390x;`,
  );
});

test("a source tree is told to build, whether it was built before or never", () => {
  for (const folder of [nativeFolder("binding.gyp", "prebuilds/"), nativeFolder()]) {
    expect(addonFailureText(noBuild("glibc"), folder)).toBe(
      "the native addon is not built: run `npm run build:native` in the package's folder",
    );
  }
});

test("what else the loader says is passed on", () => {
  expect(addonFailureText(new Error("/x.node: invalid ELF header"), nativeFolder("prebuilds/"))).toBe(
    "the native addon cannot be loaded: /x.node: invalid ELF header",
  );
});
