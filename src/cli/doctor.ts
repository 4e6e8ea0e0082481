import { driverOptions } from "../config/driver-options.js";
import { optionsHelp } from "../config/help.js";
import { boolean, integer } from "../config/option.js";
import { readOptions } from "../config/read-options.js";
import { diagnose } from "../doctor/diagnosis.js";
import { thisHost } from "../doctor/host.js";
import { selfTestBytes } from "../doctor/ipc-self-test.js";
import { createReport, reportJson, reportText } from "../doctor/report.js";
import { packageVersion } from "../version.js";
import type { Command, CommandIo, CommandResult } from "./command.js";
import { ExporterProcess } from "./exporter-process.js";

const options = {
  json: {
    flag: "json",
    kind: boolean,
    default: false,
    group: "Report",
    help: "Print one line of JSON, for machines; docs/doctor.md describes it.",
  },
  timeoutSecs: {
    flag: "timeout-secs",
    kind: integer(1, 86_400, "SECONDS"),
    default: 60,
    group: "Report",
    help: "How long one answer of the driver may take.",
  },
  ...driverOptions,
} as const;

/** Says whether memory can be shared on this machine, and what to do where it cannot. */
export const doctor: Command = {
  help: () => `Usage: cudashm doctor [options]

Looks at the machine, the container, the driver and every device, and shares memory with a process that it
starts, which is the only proof that it can be shared. Each finding is OK, WARN or FAIL, with what to do.
Run it where the service runs, as the same user. Ends with code 1 if there is a FAIL.
${optionsHelp(options)}`,

  async run(io: CommandIo): Promise<CommandResult> {
    const { values } = readOptions(options, io.args, io.env);
    const found = await diagnose({
      host: thisHost(io.env),
      preference: values.driver,
      libraryPath: values.driverLibrary,
      startExporter: (driver, ordinal, signal) => {
        const args = [`--bytes=${selfTestBytes}`, `--device=${ordinal}`, `--driver=${driver.kind}`];
        const library = driver.description?.libraryPath;
        if (library !== undefined) args.push(`--driver-library=${library}`);
        return ExporterProcess.start(io.self, args, io.env, signal);
      },
      timeoutMs: values.timeoutSecs * 1000,
      signal: io.signal,
    }).catch((error: unknown) => {
      if (io.signal.aborted) return null;
      throw error;
    });
    // Nothing waits for a driver that somebody did not want to wait for.
    if (found === null) return { code: 1, stuck: true };
    const report = createReport(packageVersion(), found.findings);
    io.stdout.write(values.json ? reportJson(report) : reportText(report));
    return { code: report.status === "FAIL" ? 1 : 0, stuck: found.stuck };
  },
};
