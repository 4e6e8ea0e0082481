import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const script = fileURLToPath(new URL("../../scripts/setup-clients.mjs", import.meta.url));

/**
 * Tests of a client that needs system packages. Where they are missing, standard error says which and what to
 * run, and the tests are skipped; with CI=true that is a failure.
 */
export function describeClient(
  title: string,
  client: "cpp" | "python" | "curl" | "browser",
  define: () => void,
): void {
  const packages = missingPackages(client);
  if (packages.length === 0) {
    describe(title, define);
    return;
  }
  const why = `${title} not tested: it needs ${packages.join(", ")}; run \`npm run setup:clients\``;
  process.stderr.write(`${why}\n`);
  if (process.env.CI === "true") test(title, () => expect.fail(why));
  else describe.skip(title, define);
}

function missingPackages(client: string): readonly string[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--missing", client], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  return stdout.split("\n").filter((name) => name !== "");
}
