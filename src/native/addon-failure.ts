import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Says why the addon in `nativeFolder` cannot be loaded, and what to do, from what node-gyp-build threw. */
export function addonFailureText(cause: unknown, nativeFolder: string): string {
  const said = cause instanceof Error ? cause.message : String(cause);
  // A path in the text may hold anything: only what the loader and node-gyp-build say around it counts.
  if (/ libc=musl\b|\bld-linux[\w-]*\.so|\bld-musl/.test(said)) {
    return "the native addon needs glibc, as NVIDIA's driver does, and this system's C library is musl: use a system with glibc, such as the image node:20-bookworm-slim in place of node:20-alpine";
  }
  const version = /version [`'"]((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)'? not found/.exec(said)?.[1];
  if (version !== undefined) {
    return `the native addon needs ${version}, which this system's C or C++ library is too old for: use Debian 12, Ubuntu 22.04 or newer, or build the package on this system as docs/packaging.md says`;
  }
  if (said.startsWith("No native build was found")) return missingBuildText("native addon", nativeFolder);
  return `the native addon cannot be loaded: ${said}`;
}

/** Says that there is no `what` built for this platform, and what to do: in a source tree, and in the package. */
export function missingBuildText(what: string, nativeFolder: string): string {
  const prebuilds = join(nativeFolder, "prebuilds");
  if (existsSync(join(nativeFolder, "binding.gyp")) || !existsSync(prebuilds)) {
    return `the ${what} is not built: run \`npm run build:native\` in the package's folder`;
  }
  const has = readdirSync(prebuilds).sort().join(", ") || "none";
  return `this package has no ${what} for ${process.platform}-${process.arch}, only for: ${has}; build the package on such a system as docs/packaging.md says`;
}
