import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { callLog } from "../../helpers/call-log.js";
import { startExporter, startService } from "../../helpers/cudashm.js";

const folder = fileURLToPath(new URL(".", import.meta.url));

export interface ContractRun {
  readonly code: number | null;
  readonly output: string;
  /** How many answers there were, by operationId, status and, for a list, whether it had regions. */
  readonly tally: Readonly<Record<string, number>>;
  /** Lines of the service's log about faults of its own. */
  readonly faults: readonly unknown[];
  /** What the driver opened and has not got back after the service ended. */
  readonly openMappings: number;
  readonly serviceEnd: unknown;
}

export interface ContractRunOptions {
  /** A file, or a path that the service answers with it. */
  readonly document: string;
  /** A file of this folder. */
  readonly config: string;
  readonly checks: readonly string[];
  readonly excludedChecks?: readonly string[];
  /** Requests made up for each operation. */
  readonly maxExamples: number;
}

/** Drives a service of its own from an OpenAPI document, with a live handle wherever a valid one is asked for. */
export async function runSchemathesis(
  python: string,
  { document, config, checks, excludedChecks = [], maxExamples }: ContractRunOptions,
): Promise<ContractRun> {
  using log = callLog();
  await using exporter = await startExporter(["--bytes=65536"]);
  await using service = await startService(["--allow-contents"], log.variables);
  const scratch = mkdtempSync(join(tmpdir(), "cudashm-contract-"));
  try {
    const tallyFile = join(scratch, "tally.json");
    const location = document.startsWith("/openapi") ? service.httpUrl + document : document;
    const child = spawn(
      join(dirname(python), "schemathesis"),
      [
        `--config-file=${join(folder, config)}`,
        "run",
        location,
        `--url=${service.httpUrl}`,
        `--checks=${checks.join(",")}`,
        ...excludedChecks.map((check) => `--exclude-checks=${check}`),
        `--max-examples=${maxExamples}`,
        "--seed=1",
        "--no-color",
      ],
      {
        // It leaves files of its own where it runs.
        cwd: scratch,
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          ...process.env,
          SCHEMATHESIS_HOOKS: "hooks",
          PYTHONPATH: folder,
          // Compiled code is kept, whatever the machine's custom: with the environment, not beside the hooks.
          PYTHONDONTWRITEBYTECODE: "",
          PYTHONPYCACHEPREFIX: join(dirname(dirname(python)), "pycache"),
          CONTRACT_URL: service.httpUrl,
          CONTRACT_EXPORTED: exporter.bodyLine,
          CONTRACT_TALLY: tallyFile,
        },
      },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const [code] = (await once(child, "close")) as [number | null];
    const tally = code === null || code > 1 ? {} : JSON.parse(readFileSync(tallyFile, "utf8"));
    const serviceEnd = await service.stop();
    return {
      code,
      output,
      tally,
      faults: service.log.filter(({ level }) => Number(level) >= 50),
      openMappings: log.count("cuIpcOpenMemHandle_v2") - log.count("cuIpcCloseMemHandle"),
      serviceEnd,
    };
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
