import { expect, test } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
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
    const rounds = await inRounds({ seed, rounds: 60 }, (random) => services.round(random));
    await services.end(new SeededRandom(seed));
    const { kills, audits, answers, lost, adopted, refused, resumed } = services.tally;
    expect(kills).toBe(rounds);
    if (rounds < 50) return;
    // Else the rounds are not what they are meant to be.
    expect(audits).toBeGreaterThan(rounds / 3);
    expect(answers).toBeGreaterThan(10 * rounds);
    for (const some of [lost, adopted, refused, resumed]) expect(some).toBeGreaterThan(rounds / 10);
  },
);
