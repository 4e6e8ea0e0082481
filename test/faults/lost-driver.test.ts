import { afterAll, beforeAll, expect, test } from "vitest";
import type { FaceRefusal } from "../contract/registry-face-client.js";
import { type StartedMemory, startMemory } from "../contract/registry-memory.js";
import type { DriverCall } from "./faulty-driver.js";
import { FaultyService, faces, notAdopted } from "./faulty-service.js";
import { refusalIn, type Scenario, scenarios } from "./scenarios.js";

const fault = 700;
const lost =
  /the CUDA driver no longer works in this process since \w+: CUDA_ERROR_ILLEGAL_ADDRESS \(700\): restart the service/;

let memory: StartedMemory;
let other: StartedMemory;

beforeAll(async () => {
  [memory, other] = await Promise.all([startMemory(4096), startMemory(4096)]);
});
afterAll(() => Promise.all([memory, other].map((each) => each[Symbol.asyncDispose]())));

/** The calls of the driver that a scenario comes to where all goes well. */
async function callsOf(scenario: Scenario): Promise<readonly DriverCall[]> {
  await using service = await FaultyService.start(scenario);
  service.faulty.newCalls();
  await scenario.run({ client: service.clients.http, service, memory, other });
  return service.faulty.newCalls().each();
}

/** What is wrong with what a client heard of a driver that is lost; null if nothing is. */
function misheard(told: FaceRefusal | null): string | null {
  if (
    told === null ||
    told.message === "Failed to unregister the following cuda shared memory regions: a ,"
  ) {
    return null;
  }
  const isClose = told.message.includes("failed to close CUDA IPC handle: ");
  const codes = isClose ? ["INTERNAL"] : ["UNAVAILABLE", notAdopted];
  return lost.test(told.message) && codes.includes(told.code)
    ? null
    : `told as ${told.code}: ${told.message}`;
}

test.each(scenarios.map((scenario) => [scenario.title, scenario] as const))(
  "a driver that is lost at any call of %s is told, and the service answers on",
  async (_, scenario) => {
    const problems: string[] = [];
    for (const [index, call] of (await callsOf(scenario)).entries()) {
      const note = (problem: string) => problems.push(`${call.name}@${call.k}: ${problem}`);
      await using service = await FaultyService.start(scenario);
      const client = service.clients[faces[index % 2] ?? "http"];
      service.faulty.newCalls();
      service.faulty.refuse(call, fault);
      const problem = misheard(await refusalIn(scenario, { client, service, memory, other }));
      service.faulty.heal();
      if (problem !== null) note(problem);
      if (service.faulty.newCalls().refused(call.name) === 0) note("not refused");

      // Of what nobody waits for nobody hears, until he asks for something.
      const open = service.openHandles();
      const again = await client.register("again", memory.part()).then(
        () => null,
        (error: FaceRefusal) => error,
      );
      if (again?.code !== "UNAVAILABLE" || !lost.test(again.message)) {
        note(`a register is ${again?.code}: ${again?.message}`);
      }
      if (await service.isReady()) note("ready");
      if (!(await client.triton.live())) note("not live");
      const { code, regions } = await client.triton.status();
      if (code !== "OK" || regions.some(({ name }) => name !== "a" && name !== "b")) {
        note(`${regions.length} regions, ${code}`);
      }
      const { code: ended } = await client.triton.unregister();
      if (ended !== (regions.length === 0 ? "OK" : "INTERNAL"))
        note(`unregistering ${regions.length} is ${ended}`);
      if (service.openHandles() !== open) note(`${service.openHandles()} handles, not ${open}`);
    }
    expect(problems).toEqual([]);
  },
);
