import type { Bench, Case, Row } from "../case.js";
import { loadContender } from "../load-contender.js";
import { exportMemory } from "../memory.js";
import { fill } from "../processes/fill.js";
import { ServerProcess } from "../processes/server.js";
import { regionName } from "../servers/arguments.js";
import { httpPair, httpStatus } from "../steps.js";

const most = 32;

/** Pairs and status of one over HTTP, beside node:http and Hono. */
export const http: Case = {
  name: "http",
  title: "register + unregister and status of one over HTTP",

  async *rows(bench: Bench): AsyncGenerator<Row> {
    // The first allocation is of the regions whose status is asked for; a pair on it would open nothing.
    await using memory = await exportMemory(bench, 1 + most);
    await using product = await ServerProcess.product(bench);
    await using logging = await ServerProcess.product(bench, ["--log-info=true"]);
    await using bare = await ServerProcess.baseline(bench, "node-http");
    await using bareNative = await ServerProcess.baseline(bench, "node-http", ["--store=native"]);
    await using hono = await ServerProcess.baseline(bench, "hono");
    await using honoNative = await ServerProcess.baseline(bench, "hono", ["--store=native"]);
    await fill(bench, product, most, memory.bodies.slice(0, 1));

    for (const connections of [1, most]) {
      const lanes = Array.from({ length: connections }, (_, lane) => [httpStatus(regionName(lane))]);
      const load = { protocol: "http", lanes } as const;
      yield {
        name: `status of one, connections: ${connections}`,
        unit: "requests/s",
        better: "more",
        contenders: [
          loadContender(bench, "cudashm", product, load),
          loadContender(bench, "node:http", bare, load),
          loadContender(bench, "Hono", hono, load),
        ],
        targets: [{ against: "Hono", atLeast: 0.95 }],
      };
    }
    for (const connections of [1, most]) {
      const lanes = Array.from({ length: connections }, (_, lane) =>
        httpPair(`pair-${lane}`, memory, 1 + lane),
      );
      const load = { protocol: "http", lanes, requestsEach: 2 } as const;
      yield {
        name: `register + unregister, connections: ${connections}`,
        unit: "pairs/s",
        better: "more",
        contenders: [
          loadContender(bench, "cudashm", product, load),
          loadContender(bench, "cudashm, every change logged", logging, load),
          loadContender(bench, "node:http", bare, load),
          loadContender(bench, "node:http + native open and close", bareNative, load),
          loadContender(bench, "Hono", hono, load),
          loadContender(bench, "Hono + native open and close", honoNative, load),
        ],
        targets: [{ against: "Hono + native open and close", atLeast: 0.75 }],
      };
    }
  },
};
