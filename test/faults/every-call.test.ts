import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StartedMemory, startMemory } from "../contract/registry-memory.js";
import { misheard } from "./expected-refusal.js";
import { FaultyService, faces } from "./faulty-service.js";
import { refusalIn, type Scene, scenarios } from "./scenarios.js";

const results = [
  [1, "CUDA_ERROR_INVALID_VALUE (1): "],
  [2, "CUDA_ERROR_OUT_OF_MEMORY (2): "],
] as const;

let memory: StartedMemory;
let other: StartedMemory;

beforeAll(async () => {
  [memory, other] = await Promise.all([startMemory(4096), startMemory(4096)]);
});
afterAll(() => Promise.all([memory, other].map((each) => each[Symbol.asyncDispose]())));

describe.each(scenarios.map((scenario) => [scenario.title, scenario] as const))("%s", (_, scenario) => {
  test.each(faces)("survives over %s that the driver refuses any one call of it", async (face) => {
    await using service = await FaultyService.start(scenario);
    const scene: Scene = { client: service.clients[face], service, memory, other };
    service.faulty.newCalls();
    expect(await refusalIn(scenario, scene)).toBeNull();
    const calls = service.faulty.newCalls().each();
    expect(calls.length).toBeGreaterThan(5);

    const problems: string[] = [];
    for (const call of calls) {
      for (const [result, text] of results) {
        const note = (problem: string) => problems.push(`${call.name}@${call.k}=${result}: ${problem}`);
        service.faulty.refuse(call, result);
        const told = await refusalIn(scenario, scene);
        service.faulty.heal();
        const refusals = service.faulty.newCalls().count(call.name, result);
        if (refusals !== 1) note(`refused ${refusals} times`);
        const problem = misheard(call, text, told, scenario.unheard?.includes(call.name));
        if (problem !== null) note(problem);

        // What is left is closed when it is asked for, and nothing is in anyone's way.
        const { code, text: why } = await scene.client.triton.unregister();
        if (code !== "OK") note(`what was left is not unregistered: ${why}`);
        if (service.openHandles() !== 0) note(`${service.openHandles()} handles are left`);
        if (service.registry.mappings !== 0) note(`${service.registry.mappings} mappings are left`);
        const again = await refusalIn(scenario, scene);
        if (again !== null) note(`it does not go well again: ${again.message}`);
        await service
          .untilNoContextIsHeld()
          .catch((error: Error) => note(`contexts are left: ${error.message}`));
        if (service.journal.records.size !== 0) note(`written down: ${service.journal.names()}`);
        service.faulty.newCalls();
      }
    }
    expect(problems).toEqual([]);
    expect(await service.isReady()).toBe(true);
  });
});
