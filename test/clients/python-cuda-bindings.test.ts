import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { callLog } from "../helpers/call-log.js";
import { startExporter } from "../helpers/cudashm.js";
import { describePython } from "./python/environment.js";
import { runPython } from "./python/run-python.js";

const documentation = readFileSync(
  fileURLToPath(new URL("../../docs/python-cuda-bindings.md", import.meta.url)),
  "utf8",
);
const timeoutMs = 60_000;

/** The driver functions that the documentation lists under this mark. */
function documented(mark: "driver" | "helper"): readonly string[] {
  const [, list = ""] =
    new RegExp(`<!-- calls: ${mark} -->\n\`\`\`text\n([^\`]+)\n`).exec(documentation) ?? [];
  return list.split("\n");
}

describePython("NVIDIA's Python packages on the emulated driver", ["clients", "cuda-newest"], (pythons) => {
  test.each([
    ["12.8.0", pythons.clients],
    ["13.5.0", pythons["cuda-newest"]],
  ])(
    "cuda.bindings.driver %s opens a handle with the calls that are documented",
    { timeout: timeoutMs },
    async (version, python) => {
      await using exporter = await startExporter(["--bytes=10000", "--fill=ab"]);
      using log = callLog();
      const request = { raw_handle: exporter.body.raw_handle.b64, offset: 9_998, write: "eHk=" };
      const { code, output } = await runPython(python, ["peer.py"], log.variables, JSON.stringify(request));
      expect(code, output).toBe(0);
      expect(JSON.parse(output)).toEqual({ version, byte_size: 10_000, read: "YWI=" });
      expect(await exporter.read(9_996, 4)).toEqual(Buffer.from("abxy"));
      expect(log.functions()).toEqual(documented("driver"));
    },
  );

  test("tritonclient's helper makes the calls that are documented", { timeout: timeoutMs }, async () => {
    using log = callLog();
    expect(await runPython(pythons.clients, ["helper_calls.py"], log.variables)).toEqual({
      code: 0,
      output: "",
    });
    expect(log.functions()).toEqual(documented("helper"));
    expect(log.count("cuMemFree_v2")).toBe(1);
  });

  test.each([
    ["35", {}],
    ["36", { CUDASHM_EMULATED_DRIVER_VERSION: "13050" }],
  ])(
    "the runtime of the newest cuda-bindings answers %s, as documented",
    { timeout: timeoutMs },
    async (result, variables) => {
      const program =
        "from cuda.bindings import runtime; print(int(runtime.cudaMalloc(64)[0]), runtime.cudaMalloc(64)[1])";
      const end = await runPython(pythons["cuda-newest"], ["-c", program], variables);
      expect(end).toEqual({ code: 0, output: `${result} None\n` });
      expect(documentation).toMatch(new RegExp(`\\b${result},\\s+\`cudaError`));
    },
  );
});
