import { fileURLToPath } from "node:url";
import { ExporterProcess } from "../../src/cli/exporter-process.js";
import { LineProcess, type ProcessEnd } from "../../src/cli/line-process.js";
import { ServiceProcess } from "../../src/cli/service-process.js";
import { keepSecret, tellsLater } from "./secrets.js";

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const self = { executable: process.execPath, args: [main] };

/** The driver that end-to-end tests run on; `npm run test:gpu` sets it to cuda. */
export const testDriver = process.env.CUDASHM_TEST_DRIVER === "cuda" ? "cuda" : "emulated";

type Variables = Readonly<Record<string, string>>;

// What the tests' own surroundings set of ours must not reach the processes they start.
function environment(variables: Variables): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("CUDASHM_"));
  return { ...Object.fromEntries(inherited), ...variables };
}

/** The service as users start it, on free ports of 127.0.0.1. */
export async function startService(
  args: readonly string[] = [],
  variables: Variables = {},
): Promise<ServiceProcess> {
  const options = [`--driver=${testDriver}`, ...args];
  const service = await ServiceProcess.start(self, options, environment(variables));
  tellsLater(() => [...service.log, service.process.errorText]);
  return service;
}

/** An exporter in a process of its own. */
export async function startExporter(
  args: readonly string[] = [],
  variables: Variables = {},
): Promise<ExporterProcess> {
  const options = [`--driver=${testDriver}`, ...args];
  const exporter = await ExporterProcess.start(self, options, environment(variables));
  keepSecret("a handle", Buffer.from(exporter.body.raw_handle.b64, "base64"));
  return exporter;
}

/** Any command, to be driven by the test. */
export function startCommand(args: readonly string[], variables: Variables = {}): LineProcess {
  return new LineProcess(self.executable, [...self.args, ...args], environment(variables));
}

/** Any command, run to its end with nothing on its standard input. */
export async function runCommand(
  args: readonly string[],
  variables: Variables = {},
): Promise<ProcessEnd & { readonly lines: readonly string[]; readonly errorText: string }> {
  const command = startCommand(args, variables);
  const ended = command.endInput();
  const lines: string[] = [];
  for await (const line of command.lines()) lines.push(line);
  return { ...(await ended), lines, errorText: command.errorText };
}
