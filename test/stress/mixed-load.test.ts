import { expect, test } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
import { told } from "../helpers/secrets.js";
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
import { memoryVariables, SharedMemories, type SharedMemory } from "./shared-memory.js";

const clients = 64;
const names = Array.from({ length: 8 }, (_, number) => `name ${number}`);
const roundSeconds = 3;
/** Of a service, before the next is started with other faults. */
const mostRounds = 20;
/** Calls of each function among which some fail: more than a service gets in so many rounds. */
const mostCalls = 20_000;

/** How much larger it may be after the last round than after the first, when some of its code ran for the first time. */
const mostGrowthBytes = 64 * 1024 * 1024;

/** Of an unregister of all the log tells each close beside it. */
const isOfDriver = /CUDA_ERROR_|closes that failed/;

const plan = stressPlan({ seed: 1, seconds: 6 });

test.skipIf(testDriver !== "emulated")(
  "64 clients of mixed calls on 8 names, with a driver that fails and is slow, leave nothing behind",
  { timeout: plan.timeout },
  async () => {
    await using memories = await SharedMemories.create(6, 256 * 1024);
    const seen = new Set<string>();
    let rounds = Math.ceil(plan.seconds / roundSeconds);
    for (let life = 0; rounds > 0; life++) {
      await loadOne(memories.all, plan.seed * 1000 + life, Math.min(rounds, mostRounds), seen);
      rounds -= mostRounds;
    }
    // Else the load is not what it is meant to be.
    const codes = ["OK", "LOST", "DEADLINE_EXCEEDED", "ALREADY_EXISTS", "NOT_FOUND", "FAILED_PRECONDITION"];
    expect([...seen]).toEqual(expect.arrayContaining(codes));
  },
);

/** One service under so many rounds of load, with faults and load of that seed. Adds the codes that were answered. */
async function loadOne(
  memories: readonly SharedMemory[],
  seed: number,
  rounds: number,
  codes: Set<string>,
): Promise<void> {
  const [memory] = memories;
  if (memory === undefined) throw new Error("there is no memory");
  const faults = injectedFaults(new SeededRandom(seed), mostCalls);
  const args = ["--orphan-grace-secs=0", "--context-linger-secs=0"];
  await using service = await LoadedService.start(args, { ...memoryVariables, ...faults });
  await using line = await PeerProxy.open(service.grpcAddress);
  const audit = { service, line, names, memory };
  {
    // Once, so that everything is loaded that a first call loads.
    using book = await ChangeBook.open(service.grpcAddress);
    await auditQuiet({ ...audit, book });
  }
  const rest = await service.atRest();
  const sizes: number[] = [];

  for (let round = 0; round < rounds; round++) {
    const problems = new Set<string>();
    const acknowledged: number[] = [];
    const onOutcome = (outcome: Outcome) => {
      const { request, answer } = outcome;
      codes.add(answer.code);
      told(answer.text);
      const isRegistered = request.op === "register" && !request.options.dryRun && answer.code === "OK";
      if (isRegistered) acknowledged.push(Number(answer.body.generation));
      const problem = problemOf(outcome, true);
      if (problem !== null) problems.add(problem);
    };
    using book = await ChangeBook.open(service.grpcAddress);
    const load = { service, memories, names, clients, onOutcome };
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
  expect(service.calls.refused("cuIpcOpenMemHandle_v2")).toBeGreaterThan(0);
  expect(service.calls.refused("cuIpcCloseMemHandle")).toBeGreaterThan(0);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  expect(service.calls.openHandles()).toBe(0);
  expect(service.errorText).toBe("");
}
