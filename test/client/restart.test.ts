import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { createCudaSharedMemoryClient } from "../../src/client/index.js";
import { readExporter } from "../../src/native/exporter-identity.js";
import { startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { createDeferred } from "../helpers/deferred.js";

const folder = mkdtempSync(join(tmpdir(), "cudashm-restart-"));
let exporter: ExporterProcess;
beforeAll(async () => {
  exporter = await startExporter();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  expect(await exporter.end()).toBe(0);
});

test.skipIf(testDriver !== "emulated")(
  "keepAlive outlives a service that is killed and takes its regions up again slowly",
  async () => {
    const start = (delay: string) =>
      startService([`--state-file=${join(folder, "regions.state")}`], { CUDASHM_EMULATED_DELAYS: delay });
    let service: ServiceProcess = await start("");
    // The service comes back on another port: the client's address is that of whichever runs.
    const answers: number[] = [];
    let renewed = createDeferred();
    const client = createCudaSharedMemoryClient({
      baseUrl: "http://service",
      fetch: async (input, init) => {
        const answer = await fetch(String(input).replace("http://service", service.httpUrl), init);
        if (String(input).endsWith("/renew")) {
          answers.push(answer.status);
          if (answer.status === 200) renewed.resolve();
        }
        return answer;
      },
    });
    const registered = await client.registerRegion("kept", {
      rawHandle: exporter.body.raw_handle.b64,
      deviceId: 0,
      byteSize: 4096,
      leaseMs: 1000,
      exporter: await readExporter(exporter.pid),
      labels: { a: "b" },
    });
    const before = await client.server();
    const abort = new AbortController();
    const missed = createDeferred();
    const errors: string[] = [];
    const kept = client.keepAlive("kept", {
      signal: abort.signal,
      onError: ({ code }) => {
        errors.push(code);
        missed.resolve();
      },
    });
    await renewed.promise;
    await service.stop("SIGKILL");
    renewed = createDeferred();
    await missed.promise;
    service = await start("cuIpcOpenMemHandle_v2@1=1500");
    await renewed.promise;
    // Asked while it was being taken up, too.
    expect(answers).toContain(503);
    expect(answers).not.toContain(404);
    expect(new Set(errors)).toEqual(new Set(["UNAVAILABLE"]));
    expect(await client.region("kept")).toMatchObject({
      state: "ready",
      reason: "adopted",
      generation: registered.generation,
      owner: registered.owner,
      labels: { a: "b" },
      leaseMs: 1000,
      isVerified: true,
    });
    const after = await client.server();
    expect(after).toMatchObject({
      epoch: before.epoch + 1n,
      adoption: { pending: 0, adopted: 1, refused: [] },
    });
    expect(after.instanceId).not.toBe(before.instanceId);
    abort.abort();
    await kept;
    expect(await client.unregisterRegion("kept", { waitMs: 5000 })).toEqual({ closed: true, pins: 0 });
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  },
);

test("what was not taken up is told with its reason", async () => {
  const args = [`--state-file=${join(folder, "refused.state")}`];
  const memory = { rawHandle: exporter.body.raw_handle.b64, deviceId: 0, byteSize: 4096 };
  await using first = await startService(args);
  const { generation } = await createCudaSharedMemoryClient({ baseUrl: first.httpUrl }).registerRegion(
    "r",
    memory,
  );
  await first.stop("SIGKILL");
  await using second = await startService(args);
  const client = createCudaSharedMemoryClient({ baseUrl: second.httpUrl });
  for (let asked = 0; asked < 1000 && !(await client.isReady()); asked++);
  expect((await client.server()).adoption).toEqual({
    pending: 0,
    adopted: 0,
    refused: [{ name: "r", generation, reason: expect.stringContaining("--adopt-unverified") }],
  });
  expect(await client.statuses()).toEqual([]);
  expect(await second.stop()).toEqual({ code: 0, signal: null });
});
