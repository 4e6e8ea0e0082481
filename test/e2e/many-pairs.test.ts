import { readdirSync, readFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import { callLog } from "../helpers/call-log.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { region } from "../helpers/http.js";

const pairs = 10_000;
const clients = 16;

test.skipIf(testDriver !== "emulated")(
  "10,000 register and unregister pairs leave opens equal to closes, and memory, files and mappings as they were",
  { timeout: 120_000 },
  async () => {
    using log = callLog();
    await using service = await startService([], log.variables);
    const exporters = await Promise.all([startExporter(), startExporter()]);
    const agent = new Agent({ keepAlive: true, maxSockets: clients });
    const post = (path: string, body?: string) =>
      new Promise<number>((resolve, reject) => {
        const call = httpRequest(service.httpUrl + path, { method: "POST", agent }, (answer) => {
          answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
        });
        call.on("error", reject).end(body);
      });
    const run = async (count: number): Promise<void> => {
      let left = count;
      const client = async (id: number): Promise<void> => {
        const body = exporters[id % exporters.length]?.bodyLine;
        while (left-- > 0) {
          expect(await post(region(`r${id}`, "register"), body)).toBe(200);
          expect(await post(region(`r${id}`, "unregister"))).toBe(200);
        }
      };
      await Promise.all(Array.from({ length: clients }, (_, id) => client(id)));
    };

    await run(2_000);
    const before = footprint(service.process.pid);
    await run(pairs - 2_000);
    const after = footprint(service.process.pid);
    expect(after.files).toBe(before.files);
    expect(after.sharedFiles).toBe(0);
    expect(after.residentMiB - before.residentMiB).toBeLessThan(32);

    agent.destroy();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    const opens = log.count("cuIpcOpenMemHandle_v2");
    expect(opens).toBeGreaterThan(0);
    expect(log.count("cuIpcCloseMemHandle")).toBe(opens);
    for (const exporter of exporters) expect(await exporter.end()).toBe(0);
  },
);

function footprint(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const maps = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  return {
    residentMiB: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024,
    files: readdirSync(`/proc/${pid}/fd`).length,
    sharedFiles: maps.filter((line) => line.includes("/memfd:cudashm")).length,
  };
}
