// Ends with 1 and says what to run if src/grpc/gen is not what buf generates from proto/ now.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const generated = "src/grpc/gen";
const scratch = mkdtempSync(join(tmpdir(), "cudashm-generated-"));
try {
  execFileSync(join(root, "node_modules/.bin/buf"), ["generate", "proto", "--output", scratch], {
    cwd: root,
    stdio: "inherit",
  });
  const fresh = filesOf(join(scratch, generated));
  const committed = filesOf(join(root, generated));
  const stale = [...new Set([...fresh.keys(), ...committed.keys()])]
    .filter((file) => fresh.get(file) !== committed.get(file))
    .sort();
  if (stale.length > 0) {
    console.error(
      `${generated} is not what proto/ generates; run \`npm run generate\` and commit:\n  ${stale.join("\n  ")}`,
    );
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** Text by path, for every file under `folder`. */
function filesOf(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Map(
    files.map((entry) => {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      return [path.slice(folder.length + 1), readFileSync(path, "utf8")];
    }),
  );
}
