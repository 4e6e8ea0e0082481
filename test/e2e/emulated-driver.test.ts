import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { expect, test } from "vitest";
import { runCommand } from "../helpers/cudashm.js";

test("emulated-driver prints the folder that holds libcuda.so.1, and nothing else", async () => {
  const { code, lines, errorText } = await runCommand(["emulated-driver"]);
  expect({ code, errorText, count: lines.length }).toEqual({ code: 0, errorText: "", count: 1 });
  const [folder = ""] = lines;
  expect(isAbsolute(folder)).toBe(true);
  expect(existsSync(join(folder, "libcuda.so.1"))).toBe(true);
});
