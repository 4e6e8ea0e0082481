import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { token } from "../../src/cli/token.js";
import { serveOptions } from "../../src/config.js";
import { startService } from "../helpers/cudashm.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const document = readFileSync(join(root, "docs/security.md"), "utf8");

function block(name: string): string {
  const found = document.match(new RegExp(`<!-- run: ${name} -->\\n\`\`\`sh\\n([^]*?)\`\`\``))?.[1];
  if (found === undefined) throw new Error(`docs/security.md has no block ${name}`);
  return found;
}

/** What a shell makes of `text`, with `npx cudashm` being the one built here. */
async function shell(text: string, folder: string, variables: Record<string, string> = {}) {
  const script = text.replaceAll("npx cudashm", `"${process.execPath}" "${join(root, "dist/main.js")}"`);
  const env = { ...process.env, ...variables };
  return await promisify(execFile)("sh", ["-ec", script], { cwd: folder, env });
}

test("the document's token is made, served and used as it says", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-security-"));
  try {
    const [serve] = block("token").match(/^npx cudashm serve .*$/m) ?? [];
    const making = block("token").replace(String(serve), "");
    const { stderr } = await shell(making, folder);
    const args = String(serve).split(" ").slice(3);
    expect(args).toEqual(["--token-file", "tokens"]);
    await using service = await startService(["--token-file", join(folder, "tokens")]);
    const call = block("call").replace("http://127.0.0.1:8000", service.httpUrl);
    const { stdout } = await shell(call, folder, { TOKEN: stderr.trim() });
    expect(`# ${stdout}`).toBe(block("call").match(/^# .*$/m)?.[0]);
    expect((await shell(call, folder, { TOKEN: "another" })).stdout).toMatch(/^\{"error":"the token is not/);
    // And a token of one's own hashes to the same as the command's.
    const hash = await shell('printf %s "$TOKEN" | sha256sum', folder, { TOKEN: stderr.trim() });
    expect(readFileSync(join(folder, "tokens"), "utf8")).toBe(`alice: ${hash.stdout.slice(0, 64)}\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("every flag that the document names is one of the service's, or of the command that makes tokens", () => {
  const flags = new Set(Object.values(serveOptions).map(({ flag }) => `--${flag}`));
  for (const flag of token.help().match(/--[a-z][a-z-]+/g) ?? []) flags.add(flag);
  const named = new Set(document.match(/--[a-z][a-z-]+/g));
  expect([...named].filter((flag) => !flags.has(flag))).toEqual([]);
  expect(named.size).toBeGreaterThan(12);
});
