import { expect, test } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
import { SeededRandom } from "../kill/seeded-random.js";
import { ChangeBook } from "./change-book.js";
import { problemOf } from "./expected-answers.js";
import { injectedFaults } from "./injected-faults.js";
import { LoadedService } from "./loaded-service.js";
import type { Outcome } from "./mixed-client.js";
import { runMixedLoad } from "./mixed-load.js";
import { PeerProxy } from "./peer-proxy.js";
import { stressPlan } from "./plan.js";
import { auditQuiet } from "./quiet-audit.js";
import { memoryVariables, SharedMemories } from "./shared-memory.js";

const clients = 64;
const names = Array.from({ length: 8 }, (_, number) => `name ${number}`);
const roundSeconds = 3;

/** How much larger it may be after the last round than after the first, when some of its code ran for the first time. */
const mostGrowthBytes = 64 * 1024 * 1024;

/** Of an unregister of all the log tells each close beside it. */
const isOfDriver = /CUDA_ERROR_|closes that failed/;

test.skipIf(testDriver !== "emulated")(
  "64 clients of mixed calls on 8 names, with a driver that fails and is slow, leave nothing behind",
  { timeout: 1_000_000 },
  async () => {
    const { seed, seconds } = stressPlan({ seed: 1, seconds: 9 });
    await using memories = await SharedMemories.create(6, 256 * 1024);
    const [memory] = memories.all;
    if (memory === undefined) throw new Error("there is no memory");
    const faults = injectedFaults(new SeededRandom(seed), 20_000);
    const args = ["--orphan-grace-secs=0", "--context-linger-secs=0"];
    await using service = await LoadedService.start(args, { ...memoryVariables, ...faults });
    await using line = await PeerProxy.open(service.grpcAddress);
    const audit = { service, line, names, memory };
    // Once, so that everything is loaded that a first call loads.
    {
      using book = await ChangeBook.open(service.grpcAddress);
      await auditQuiet({ ...audit, book });
    }
    const rest = await service.atRest();
    const answers = new Map<string, number>();
    const count = ({ request, answer }: Outcome) => {
      for (const what of [request.op, answer.code]) answers.set(what, (answers.get(what) ?? 0) + 1);
    };

    const sizes: number[] = [];

    for (let round = 0; round < seconds / roundSeconds; round++) {
      const problems = new Set<string>();
      const acknowledged: number[] = [];
      const onOutcome = (outcome: Outcome) => {
        count(outcome);
        const { request, answer } = outcome;
        const isRegistered = request.op === "register" && !request.options.dryRun && answer.code === "OK";
        if (isRegistered) acknowledged.push(Number(answer.body.generation));
        const problem = problemOf(outcome, true);
        if (problem !== null) problems.add(problem);
      };
      using book = await ChangeBook.open(service.grpcAddress);
      const load = { service, memories: memories.all, names, clients, onOutcome };
      await runMixedLoad({ ...load, seed: seed * 1000 + round, seconds: roundSeconds });
      expect([...problems], `seed ${seed}, round ${round}`).toEqual([]);
      await auditQuiet({ ...audit, book });
      expect(acknowledged.filter((generation) => !book.knows(generation))).toEqual([]);
      book[Symbol.dispose]();
      await service.untilQuiet(rest);
      sizes.push(service.footprint().residentBytes);
    }
    expect((sizes.at(-1) ?? 0) - (sizes[0] ?? 0)).toBeLessThan(mostGrowthBytes);
    // Nothing but what the driver was told to refuse is a fault of the service.
    const faultLines = service.warnings.filter(({ level }) => Number(level) >= 50);
    expect(faultLines.filter((logged) => !isOfDriver.test(JSON.stringify(logged)))).toEqual([]);
    // Else the load is not what it is meant to be.
    for (const what of [
      "OK",
      "LOST",
      "DEADLINE_EXCEEDED",
      "ALREADY_EXISTS",
      "NOT_FOUND",
      "FAILED_PRECONDITION",
    ]) {
      expect(answers.get(what), what).toBeGreaterThan(0);
    }
    expect(service.calls.refused("cuIpcOpenMemHandle_v2")).toBeGreaterThan(0);
    expect(service.calls.refused("cuIpcCloseMemHandle")).toBeGreaterThan(0);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(service.calls.openHandles()).toBe(0);
    expect(service.errorText).toBe("");
  },
);
