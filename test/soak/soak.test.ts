import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { testDriver } from "../helpers/cudashm.js";

const script = fileURLToPath(new URL("../../scripts/soak.mjs", import.meta.url));
const leaking = new URL("../fixtures/leaking-service.mjs", import.meta.url).href;

/** Soaks for some seconds; resolves with the exit code and what was printed. */
async function soak(seconds: number, variables: Readonly<Record<string, string>> = {}) {
  const args = [script, `--minutes=${seconds / 60}`, `--every=${seconds / 10}`];
  const { NODE_OPTIONS, ...environment } = process.env;
  await using child = new LineProcess(process.execPath, args, { ...environment, ...variables });
  const lines: string[] = [];
  for await (const line of child.lines()) lines.push(line);
  const { code } = await child.exit;
  return { code, lines, errorText: child.errorText };
}

const sample =
  /^ +\d+ s {2}RSS [\d.]+ MiB {2}heap [\d.]+ MiB {2}files \d+ {2}event loop p99 [\d.]+ ms {2}regions \d+ /;

describe.skipIf(testDriver !== "emulated").concurrent("npm run soak", () => {
  test("says every so often what the service has, and ends well where nothing drifts", async () => {
    const { code, lines, errorText } = await soak(8);
    expect({ code, errorText, last: lines.at(-1) }).toEqual({
      code: 0,
      errorText: "",
      last: "nothing drifts",
    });
    expect(lines.slice(0, -1)).toHaveLength(10);
    for (const line of lines.slice(0, -1)) expect(line).toMatch(sample);
  });

  test("fails where memory is lost", async () => {
    const { code, lines } = await soak(8, { NODE_OPTIONS: `--import=${leaking}`, LEAK: "memory" });
    expect(code).toBe(1);
    expect(lines.join("\n")).toMatch(/^failed: RSS grew by [\d.]+ MiB along its trend, from \d+/m);
  });

  test("fails where files are lost", async () => {
    const { code, lines } = await soak(8, { NODE_OPTIONS: `--import=${leaking}`, LEAK: "files" });
    expect(code).toBe(1);
    expect(lines.join("\n")).toMatch(/^failed: no quiet after \d+ ms: .*"files":/m);
  });

  test("fails where handles are not closed", async () => {
    const { code, lines } = await soak(8, { CUDASHM_EMULATED_FAULTS: "cuIpcCloseMemHandle=1" });
    expect(code).toBe(1);
    expect(lines.join("\n")).toMatch(/^failed: opens - closes is [1-9]\d* with every region unregistered$/m);
  });
});
