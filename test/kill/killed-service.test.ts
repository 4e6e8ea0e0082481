import { expect, test } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
import { planRewriteDeath } from "./kill-plan.js";
import { inRounds } from "./rounds.js";
import { SeededRandom } from "./seeded-random.js";
import { ServiceRounds } from "./service-rounds.js";
import { World } from "./world.js";

test.skipIf(testDriver !== "emulated").each([
  { who: "anonymous callers", tokens: [], seed: 5 },
  { who: "callers with tokens", tokens: ["alice", "bob"], seed: 6 },
])(
  "a service killed at any moment under load of $who finds all that was acknowledged, and nothing else",
  { timeout: 600_000 },
  async ({ tokens, seed }) => {
    await using world = await World.create();
    await using services = new ServiceRounds({ world, tokens });
    const rounds = await inRounds({ seed, rounds: 53 }, (random) => services.round(random));
    await services.end(new SeededRandom(seed));
    const { kills, stops, audits, answers, lost, adopted, refused, resumed } = services.tally;
    expect(kills + stops).toBe(rounds);
    if (rounds < 50) return;
    // Else the rounds are not what they are meant to be.
    expect(kills).toBeGreaterThan(stops);
    expect(audits).toBeGreaterThan(rounds / 3);
    expect(answers).toBeGreaterThan(10 * rounds);
    for (const some of [lost, adopted, refused]) expect(some).toBeGreaterThan(rounds / 3);
    expect(resumed).toBeGreaterThan(0);
  },
);

test.skipIf(testDriver !== "emulated")(
  "a service killed while it writes its state file anew finds all of it",
  { timeout: 600_000 },
  async () => {
    await using world = await World.create();
    await using services = new ServiceRounds({ world, tokens: [] });
    const rounds = await inRounds({ seed: 16, rounds: 4 }, (random) =>
      services.round(random, planRewriteDeath(random)),
    );
    await services.end(new SeededRandom(rounds));
    expect(services.tally.kills).toBe(rounds);
  },
);
