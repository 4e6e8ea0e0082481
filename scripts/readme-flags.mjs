// Writes the README's table of flags from the table that parses them. A test tells when it is out of date.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configRows } from "../dist/config.js";
import { root } from "./tree-hash.mjs";

const path = join(root, "README.md");
const cell = (text) => text.replaceAll("|", "\\|");
const rows = configRows().map(
  (row) =>
    `| \`${cell(row.flag)}\` | \`${row.env}\` | ${row.default && `\`${row.default}\``} | ${cell(row.help)} |`,
);
const table = ["| flag | variable | default | |", "|---|---|---|---|", ...rows].join("\n");
const readme = readFileSync(path, "utf8");
const next = readme.replace(
  /<!-- flags -->[\s\S]*<!-- \/flags -->/,
  () => `<!-- flags -->\n${table}\n<!-- /flags -->`,
);
if (process.argv.includes("--check")) {
  if (next !== readme) {
    process.stderr.write("README.md: the table of flags is out of date; run: npm run readme:flags\n");
    process.exitCode = 1;
  }
} else {
  writeFileSync(path, next);
}
