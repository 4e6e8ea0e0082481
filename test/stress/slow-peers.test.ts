import { expect, test } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
import { HttpFaceClient } from "./http-face-client.js";
import { LoadedService } from "./loaded-service.js";
import { stressPlan } from "./plan.js";
import { percentile, probe } from "./probe.js";
import { memoryVariables, SharedMemories } from "./shared-memory.js";
import { SlowPeers } from "./slow-peers.js";

const region = "large";
const largeBytes = 64 * 1024 * 1024;

const plan = stressPlan({ seed: 0, seconds: 3 });

/**
 * How often clients by themselves and beside such peers take turns. What else the machine does makes this phase or that
 * one slow; what such peers do makes slow all that are beside them. So the best of both are compared.
 */
const phases = 3;

/** Of the calls of a client: 450 samples for each percentile, and more where more time is given. */
const times = 5 * Math.ceil(plan.seconds);

/** Of each kind, of which there are 22. */
const count = 4;

/** What is held for a reader that takes nothing is a piece of 1 MiB or two, of the 64 that the region has. */
const mostGrowthBytes = 160 * 1024 * 1024;

test.skipIf(testDriver !== "emulated")(
  "clients that read and write a byte a second, vanish or are stopped harm no other client, and hold little memory",
  { timeout: plan.timeout },
  async () => {
    await using large = await SharedMemories.create(1, largeBytes);
    await using small = await SharedMemories.create(1, 4096);
    const [[largeMemory], [memory]] = [large.all, small.all];
    if (largeMemory === undefined || memory === undefined) throw new Error("there is no memory");
    await using service = await LoadedService.start(["--context-linger-secs=0"], memoryVariables);
    using http = new HttpFaceClient(service.httpAddress);
    await probe(service, memory, times);
    const rest = await service.atRest();
    const alone: number[] = [];
    const besidePeers: number[] = [];

    for (let phase = 0; phase < phases; phase++) {
      const { code } = await http.call(
        { op: "registerAsTriton", name: region, memory: largeMemory },
        null,
        null,
      );
      expect(code).toBe("OK");
      alone.push(percentile(await probe(service, memory, times), 99));
      const { residentBytes } = service.footprint();
      await using _peers = await SlowPeers.open({ service, region, memory, count });
      besidePeers.push(percentile(await probe(service, memory, times), 99));
      expect(service.footprint().residentBytes - residentBytes).toBeLessThan(mostGrowthBytes);
      // Whoever pins the memory and does nothing with it has it taken away.
      const release = { op: "release", name: region, waitMs: 0, force: true } as const;
      expect(await http.call(release, null, null)).toMatchObject({ code: "OK", body: { closed: true } });
    }

    const [quick, slow] = [Math.min(...alone), Math.min(...besidePeers)];
    expect(slow, `p99 in milliseconds; ${quick} without such clients`).toBeLessThan(2 * quick + 25);
    http[Symbol.dispose]();
    await service.untilQuiet(rest);
    expect(service.calls.openHandles()).toBe(0);
    expect(service.warnings.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(service.errorText).toBe("");
  },
);
