import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { callLog } from "../helpers/call-log.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { inferenceClient } from "../helpers/inference-client.js";

const refused = 2_000;
const atOnce = 16;

test.skipIf(testDriver !== "emulated")(
  "2,000 refused registers leave no mapping open in the driver, and the service maps nothing",
  async () => {
    using log = callLog();
    await using service = await startService([], log.variables);
    const exporters = await Promise.all([startExporter(), startExporter()]);
    using client = inferenceClient(service.grpcAddress);
    const handles = exporters.map(({ body }) => Buffer.from(body.raw_handle.b64, "base64"));
    // A byte too many is found only after the open; the others are refused sooner, or by the driver.
    const wrong = [
      { byte_size: 4097 },
      { byte_size: "18446744073709551615" },
      { byte_size: 0 },
      { byte_size: 1, device_id: 99 },
      { byte_size: 1, raw_handle: Buffer.concat([Buffer.from("CUDASHM-EMULATED"), Buffer.alloc(48)]) },
    ];
    const codes = new Map<unknown, number>();
    let next = 0;
    const lane = async (id: number): Promise<void> => {
      while (next < refused) {
        const fields = wrong[next++ % wrong.length];
        const register = {
          name: `r${id}`,
          raw_handle: handles[id % handles.length],
          device_id: 0,
          ...fields,
        };
        const { code } = await client.call("CudaSharedMemoryRegister", register).then(
          () => ({ code: 0 }),
          (error: { code: number }) => error,
        );
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, (_, id) => lane(id)));

    expect([...codes]).toEqual([[3, refused]]);
    expect(readFileSync(`/proc/${service.process.pid}/maps`, "utf8")).not.toContain("/memfd:cudashm");
    const opens = log.count("cuIpcOpenMemHandle_v2");
    expect(opens).toBeGreaterThan(0);
    expect(log.count("cuIpcCloseMemHandle")).toBe(opens);
    expect(log.count("cuIpcOpenMemHandle_v2", 1)).toBeGreaterThan(0);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(service.log.filter((line) => line.change !== undefined || Number(line.level) >= 40)).toEqual([]);
    for (const exporter of exporters) expect(await exporter.end()).toBe(0);
  },
  120_000,
);
