import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadConfig } from "../src/config.js";
import type { IpcMemHandle } from "../src/core/handle.js";
import { createLog } from "../src/log.js";
import { openRegionState } from "../src/region-state.js";
import { createDeferred } from "./helpers/deferred.js";
import { driverError } from "./helpers/fake-driver.js";
import { createLifecycle } from "./helpers/lifecycle-harness.js";
import { context, request } from "./helpers/registry-harness.js";

const folder = mkdtempSync(join(tmpdir(), "cudashm-region-state-"));
afterAll(() => rmSync(folder, { recursive: true }));

const usable = Promise.resolve();

/** A start of the service on a state file, as far as its regions go, on a machine with three processes. */
async function start(file: string) {
  const { config } = loadConfig([`--state-file=${join(folder, file)}`], {});
  const lines: Record<string, unknown>[] = [];
  const log = createLog("info", { write: (line: string) => void lines.push(JSON.parse(line)) });
  const state = await openRegionState(config, log);
  const service = createLifecycle(state.registryOptions);
  const exporters = [service.exporters.start(), service.exporters.start(), service.exporters.start()];
  return {
    ...service,
    exporters,
    adopt: (whenUsable = usable) => state.adopt(service.registry, whenUsable),
    stop: async () => {
      await service.registry.close();
      await state.close();
    },
    /** What its log says of the run before. */
    told: () =>
      lines.map(({ level, msg, region, reason, adopted, forgotten, kept }) =>
        region === undefined ? { level, msg, adopted, forgotten, kept } : { level, msg, region, reason },
      ),
  };
}

/** The handles of regions `0`, `1` and so on, of an exporter each, and of `unproved`, of none, after a stop. */
async function runBefore(file: string): Promise<readonly IpcMemHandle[]> {
  const { registry, driver, exporters, adopt, stop, told } = await start(file);
  await adopt();
  expect(told()).toEqual([
    { level: 30, msg: "regions of the run before were taken up", adopted: 0, forgotten: 0, kept: 0 },
  ]);
  const handles: IpcMemHandle[] = [];
  for (const exporter of [...exporters, undefined]) {
    const { handle } = driver.allocate(64);
    const name = exporter === undefined ? "unproved" : String(handles.push(handle) - 1);
    await registry.register(request(name, handle, { exporter }), context);
  }
  await stop();
  return handles;
}

const forgotten = "region of the run before was not taken up and is forgotten";
const kept = "region of the run before was not taken up and stays in the state file for the next start";
const butForSome =
  "regions of the run before were taken up, but for those forgotten or kept for the next start";

test("the log tells of each region that is not taken up whether the next start tries again", async () => {
  const handles = await runBefore("fates.state");
  const second = await start("fates.state");
  for (const handle of handles) second.driver.allocate(64, 0, handle);
  second.driver.beforeOpen = (_deviceId, handle) => {
    if (handle.exposeKey() === handles[1]?.exposeKey()) throw driverError(2, "CUDA_ERROR_OUT_OF_MEMORY");
    if (handle.exposeKey() === handles[2]?.exposeKey()) throw driverError(1, "CUDA_ERROR_INVALID_VALUE");
  };
  await second.adopt();
  const told = second.told();
  expect(told.slice(0, -1).sort((a, b) => String(a.region).localeCompare(String(b.region)))).toEqual([
    { level: 40, msg: kept, region: "1", reason: expect.stringContaining("CUDA_ERROR_OUT_OF_MEMORY") },
    { level: 40, msg: forgotten, region: "2", reason: expect.stringContaining("CUDA_ERROR_INVALID_VALUE") },
    { level: 40, msg: forgotten, region: "unproved", reason: expect.stringContaining("--adopt-unverified") },
  ]);
  expect(told.at(-1)).toEqual({ level: 30, msg: butForSome, adopted: 1, forgotten: 2, kept: 1 });
  await second.stop();

  const third = await start("fates.state");
  for (const handle of handles) third.driver.allocate(64, 0, handle);
  await third.adopt();
  expect(third.states()).toEqual(["0 ready", "1 ready"]);
  await third.stop();
});

test("the log tells of regions that a stop came before that they stay for the next start", async () => {
  const handles = await runBefore("stopped.state");
  const second = await start("stopped.state");
  const adopted = second.adopt(createDeferred().promise);
  await second.registry.close();
  await adopted;
  const told = second.told();
  expect(told.filter(({ msg }) => msg === kept)).toEqual(
    handles.map((_, index) => ({ level: 40, msg: kept, region: String(index), reason: "Server exiting" })),
  );
  expect(told.at(-1)).toEqual({ level: 30, msg: butForSome, adopted: 0, forgotten: 1, kept: 3 });
  await second.stop();

  const third = await start("stopped.state");
  for (const handle of handles) third.driver.allocate(64, 0, handle);
  await third.adopt();
  expect(third.states()).toEqual(["0 ready", "1 ready", "2 ready"]);
  await third.stop();
});
