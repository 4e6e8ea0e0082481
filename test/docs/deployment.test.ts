import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { configRows } from "../../src/config.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const text = readFileSync(join(root, "docs", "deployment.md"), "utf8");
const matches = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, found]) => found);

test("every variable that the guide to deployment names is one of the service", () => {
  const variables = configRows().map(({ env }) => env);
  const named = matches(/(CUDASHM_[A-Z_]*[A-Z])/g);
  expect(named).not.toEqual([]);
  for (const name of named) expect(variables).toContain(name);
});

test("every profile that the guide names is in the compose file", () => {
  const compose = readFileSync(join(root, "docker-compose.yml"), "utf8");
  const named = matches(/--profile (\w+)/g);
  expect(named).toEqual(["emulated", "demo"]);
  for (const name of named) expect(compose).toMatch(new RegExp(`profiles: \\[[^\\]]*\\b${name}\\b`));
});

test("every file that the guide leads to is there", () => {
  const linked = matches(/\]\(([^)#]+)\)/g);
  expect(linked).not.toEqual([]);
  for (const path of linked) expect(existsSync(join(root, "docs", path ?? "")), path).toBe(true);
});
