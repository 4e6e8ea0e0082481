import { afterAll, beforeAll, expect, test } from "vitest";
import type { FaceRefusal } from "../contract/registry-face-client.js";
import { type StartedMemory, startMemory } from "../contract/registry-memory.js";
import { FaultyDriver } from "./faulty-driver.js";
import { FaultyService, faces } from "./faulty-service.js";

let memory: StartedMemory;

beforeAll(async () => {
  memory = await startMemory(4096);
});
afterAll(() => memory[Symbol.asyncDispose]());

test.each([
  [2, "CUDA_ERROR_OUT_OF_MEMORY (2): "],
  [999, "CUDA_ERROR_UNKNOWN (999): "],
])(
  "a driver that refuses any call of its start with %d is told by both faces, and may be there later",
  async (result, text) => {
    using healthy = await FaultyDriver.start();
    const calls = healthy.newCalls().each();
    expect(calls.map(({ name }) => name)).toContain("cuInit");
    const problems: string[] = [];
    for (const { name, k } of calls) {
      const note = (problem: string) => problems.push(`${name}@${k}: ${problem}`);
      const isUnheard = name === "cuDriverGetVersion" && result === 2;
      let now = 0;
      await using service = await FaultyService.start({ faults: `${name}@${k}=${result}`, now: () => now });
      const { faulty } = service;
      if (faulty.newCalls().refused(name) === 0) note("not refused");
      for (const face of faces) {
        const { code, message } = await service.clients[face].register("a", memory.part()).then(
          () => ({ code: "OK", message: "" }),
          (error: FaceRefusal) => error,
        );
        const isRight = isUnheard ? code === "OK" : code === "UNAVAILABLE" && message.includes(text);
        if (!isRight) note(`a register over ${face} is ${code}: ${message}`);
        if (code === "OK") await service.clients[face].unregister("a");
      }
      faulty.heal();
      now += 1000;
      const { code } = await service.clients.http.register("a", memory.part()).then(
        () => ({ code: "OK" }),
        (error: FaceRefusal) => error,
      );
      // What spoils the process is not over for it.
      if (code !== (result === 999 ? "UNAVAILABLE" : "OK")) note(`later a register is ${code}`);
      if ((await service.isReady()) !== (code === "OK")) note("readiness");
      if (service.registry.mappings !== service.openHandles()) note("handles are left");
    }
    expect(problems).toEqual([]);
  },
);
