import type { Bench, Case, Contender, Row } from "../case.js";
import { exportMemory } from "../memory.js";
import { fill } from "../processes/fill.js";
import { ServerProcess } from "../processes/server.js";

/** What a region takes, JavaScript's heap and native memory together. */
export const memory: Case = {
  name: "memory",
  title: "memory of a region",

  async *rows(bench: Bench): AsyncGenerator<Row> {
    const shared = bench.isTiny ? 100 : 100_000;
    // On the emulated driver each mapping is a file and two mappings of this process, and of the exporter.
    const distinct = bench.isTiny ? 10 : 8_000;
    for (const [count, allocations] of [
      [shared, 1],
      [distinct, distinct],
    ] as const) {
      await using exported = await exportMemory(bench, allocations);
      yield {
        name: `${count} regions on ${allocations === 1 ? "one allocation" : "an allocation each"}`,
        unit: "bytes a region",
        better: "less",
        contenders: [
          growth("cudashm", () => ServerProcess.product(bench)),
          growth("a Map of name and device", () =>
            ServerProcess.baseline(bench, "node-http", ["--store=map"]),
          ),
        ],
        targets: allocations === 1 ? [{ figure: "bytes a region", below: 1024, of: "median" }] : [],
        atMostRounds: 3,
        warmUp: false,
        note: "The Map is what a server of node:http keeps that has nothing else to do. Resident memory also has what the heap took for the requests and keeps in reserve.",
      };

      function growth(name: string, start: () => Promise<ServerProcess>): Contender {
        return {
          name,
          async measure() {
            await using server = await start();
            // What the first requests bring about is no region's.
            await fill(bench, server, 1, exported.bodies);
            const before = await server.memory();
            bench.progress(`registering ${count} regions`);
            await fill(bench, server, count, exported.bodies, 1);
            const after = await server.memory();
            const each = (what: "heap" | "native" | "resident") => (after[what] - before[what]) / count;
            return {
              value: each("heap") + each("native"),
              more: {
                "JavaScript's heap": each("heap"),
                native: each("native"),
                "resident in all": each("resident"),
              },
            };
          },
        };
      }
    }
  },
};
