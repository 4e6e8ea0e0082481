import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's root folder. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** SHA-256 over the names and contents of files and folders, given relative to the root. */
export function treeHash(paths) {
  const hash = createHash("sha256");
  for (const path of paths) add(hash, path);
  return hash.digest("hex");
}

function add(hash, path) {
  const absolute = join(root, path);
  if (statSync(absolute).isDirectory()) {
    for (const entry of readdirSync(absolute).sort()) add(hash, join(path, entry));
  } else {
    hash.update(path).update("\0").update(readFileSync(absolute)).update("\0");
  }
}
