import { optionsHelp } from "../config/help.js";
import { loadConfig, serveOptions } from "../config.js";
import { ListenError } from "../listen-error.js";
import { createSwitchedLog } from "../log.js";
import { openLogOutput } from "../log-output.js";
import { StopTimeout, startService } from "../service.js";
import { StateFileError } from "../state/state-file-error.js";
import { isTracingWanted } from "../tracing/wanted.js";
import { packageVersion } from "../version.js";
import type { Command, CommandIo, CommandResult } from "./command.js";
import { createDoctorProcess } from "./doctor-process.js";

/** How long the last traces may keep a stop waiting, within its timeout. */
const lastTracesMs = 2000;

/** Runs the service until a signal, logging to standard output. */
export const serve: Command = {
  help: () => `Usage: cudashm serve [options]

Runs the service until SIGINT or SIGTERM, with the log on standard output: one JSON object a line, on a
terminal lines for people.
Every option can be set by a variable too; the command line beats the environment. Ends with code 0 after
a stop, 1 if it could not start or stop, 2 if an option is wrong.
${optionsHelp(serveOptions)}`,

  async run(io: CommandIo): Promise<CommandResult> {
    const { config, warnings } = loadConfig(io.args, io.env);
    const isTerminal = io.stdout.isTTY === true;
    const log = createSwitchedLog(config, await openLogOutput({ ...config, isTerminal }));
    for (const warning of warnings) log.warn(warning);

    // Loaded only where it is asked for: it is larger than the rest of the service.
    const tracing = isTracingWanted(io.env)
      ? (await import("../tracing/tracing.js")).startTracing({
          name: config.id,
          version: packageVersion(),
          log,
        })
      : undefined;

    let service: Awaited<ReturnType<typeof startService>>;
    try {
      service = await startService(config, {
        log,
        diagnose: config.allowDoctor ? createDoctorProcess(io, config) : undefined,
        tracing,
      });
    } catch (error) {
      if (error instanceof ListenError) io.stderr.write(`cudashm: ${error.message}\n`);
      else if (error instanceof StateFileError) {
        io.stderr.write(`cudashm: --state-file ${error.path}: ${error.message}\n`);
      } else throw error;
      return { code: 1 };
    }
    await aborted(io.signal);
    const stopBy = performance.now() + config.exitTimeoutSecs * 1000;
    try {
      await service.stop();
    } catch (error) {
      if (!(error instanceof StopTimeout)) throw error;
      log.fatal({ waitingFor: error.waitingFor }, error.message);
      return { code: 1, stuck: true };
    }
    const sent = await tracing?.stop(Math.min(lastTracesMs, Math.max(0, stopBy - performance.now())));
    return { code: 0, stuck: sent === false };
  },
};

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
