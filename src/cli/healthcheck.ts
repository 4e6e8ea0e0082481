import { optionsHelp } from "../config/help.js";
import { boolean } from "../config/option.js";
import { readOptions } from "../config/read-options.js";
import { type Config, serveOptions } from "../config.js";
import type { Command, CommandIo, CommandResult } from "./command.js";
import type { HealthAnswer, HealthQuestion } from "./health-answer.js";

const options = {
  live: {
    flag: "live",
    kind: boolean,
    default: false,
    group: "Health",
    help: "Ask only whether the service is alive, whatever its driver is.",
  },
} as const;

// Long enough for a loaded machine, well below the patience of whoever supervises.
const patienceMs = 5000;

/** Asks a service on this machine how it is: for supervisors, and for images that have no curl. */
export const healthcheck: Command = {
  help: () => `Usage: cudashm healthcheck [--live] [options of serve]

Asks the service on this machine whether it is ready, over HTTP or, where that is off, over gRPC. Finds it
by the options and variables that started it; gives up after ${patienceMs / 1000} s. Ends with code 0 if it is, 1 if not, and one
line that says so.
${optionsHelp(options)}
All options of "cudashm serve" are taken too, so that both can be given the same. A Unix socket is asked
rather than a port. With --http-use-ssl-mutual and no socket, the service's own certificate is shown:
--http-root-cert has to have signed it, and its extended key usage, if it has one, has to name clients
too.
`,

  async run(io: CommandIo): Promise<CommandResult> {
    const { values } = readOptions({ ...serveOptions, ...options }, io.args, io.env);
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(patienceMs)]);
    const { healthy, text } = await ask(values, values.live ? "live" : "ready", signal);
    (healthy ? io.stdout : io.stderr).write(`${text}\n`);
    return { code: healthy ? 0 : 1 };
  },
};

async function ask(config: Config, question: HealthQuestion, signal: AbortSignal): Promise<HealthAnswer> {
  if (config.allowHttp) {
    const { askOverHttp } = await import("./healthcheck-http.js");
    return await askOverHttp(config, question, signal);
  }
  if (config.allowGrpc) {
    const { askOverGrpc } = await import("./healthcheck-grpc.js");
    return await askOverGrpc(config, question, signal);
  }
  return { healthy: false, text: "HTTP and gRPC are both switched off: there is nothing to ask" };
}
