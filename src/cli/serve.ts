import { optionsHelp } from "../config/help.js";
import { loadConfig, serveOptions } from "../config.js";
import { ListenError } from "../listen-error.js";
import { createSwitchedLog } from "../log.js";
import { openLogOutput } from "../log-output.js";
import { StopTimeout, startService } from "../service.js";
import type { Command, CommandIo, CommandResult } from "./command.js";
import { createDoctorProcess } from "./doctor-process.js";

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

    let service: Awaited<ReturnType<typeof startService>>;
    try {
      service = await startService(config, {
        log,
        diagnose: config.allowDoctor ? createDoctorProcess(io, config) : undefined,
      });
    } catch (error) {
      if (!(error instanceof ListenError)) throw error;
      io.stderr.write(`cudashm: ${error.message}\n`);
      return { code: 1 };
    }
    await aborted(io.signal);
    try {
      await service.stop();
    } catch (error) {
      if (!(error instanceof StopTimeout)) throw error;
      log.fatal({ waitingFor: error.waitingFor }, error.message);
      return { code: 1, stuck: true };
    }
    return { code: 0 };
  },
};

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
