import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Case, Contender, Row } from "../case.js";
import { answersOk, freePort, untilUp } from "../processes/listening.js";
import { productArgs, productScript } from "../processes/server.js";
import { WorkerProcess } from "../processes/worker-process.js";
import { cudaPath } from "../servers/http-api.js";

const honoScript = fileURLToPath(new URL("../servers/hono.js", import.meta.url));
const anyStatus = `${cudaPath}/region/any/status`;

/** How long an idle process has to settle. */
const idleMs = 1000;

/** How soon the service is ready, and what it takes while nobody asks for anything. Not bound to a core. */
export const start: Case = {
  name: "start",
  title: "start to ready, and idle memory",

  async *rows({ isTiny }): AsyncGenerator<Row> {
    const contenders = (look: (process: WorkerProcess, startedAt: number) => Promise<number>) =>
      [
        startContender("cudashm", productScript, productArgs, "/v2/health/ready", look),
        startContender("Hono", honoScript, (port) => [String(port)], anyStatus, look),
      ] as const;
    yield {
      name: "start to ready",
      unit: "ms",
      better: "less",
      contenders: [...contenders(async (_, startedAt) => performance.now() - startedAt)],
      targets: [{ figure: "ms", below: 400, of: "median" }],
      note: "From the start of the process to the first answer that says ready.",
    };
    yield {
      name: "idle memory",
      unit: "MiB",
      better: "less",
      contenders: [
        ...contenders(async ({ pid }) => {
          await setTimeout(isTiny ? 1 : idleMs);
          return residentMiB(pid);
        }),
      ],
      atMostRounds: 3,
      warmUp: false,
      note: "Resident, a second after it is ready.",
    };
  },
};

function startContender(
  name: string,
  script: string,
  argsOf: (httpPort: number, grpcPort: number) => readonly string[],
  path: string,
  look: (process: WorkerProcess, startedAt: number) => Promise<number>,
): Contender {
  return {
    name,
    async measure() {
      const [http, grpc] = [await freePort(), await freePort()];
      const startedAt = performance.now();
      await using server = new WorkerProcess(script, { core: null, args: argsOf(http, grpc) });
      await untilUp(
        () => answersOk(http, path),
        () => server.hasEnded,
      );
      return { value: await look(server, startedAt) };
    },
  };
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
