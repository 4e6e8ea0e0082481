import type { Config } from "../config.js";
import { listenForAbort } from "../core/abort.js";
import type { CommandIo } from "./command.js";
import { LineProcess } from "./line-process.js";

/**
 * Runs `cudashm doctor --json` on the service's driver, one at a time: who asks while one runs gets its report.
 * In a process of its own, because a driver that hangs or breaks there is still whole here.
 */
export function createDoctorProcess(
  { self, env, signal }: CommandIo,
  { driver, driverLibrary }: Config,
): () => Promise<string> {
  const args = [...self.args, "doctor", "--json", `--driver=${driver}`];
  if (driverLibrary !== null) args.push(`--driver-library=${driverLibrary}`);

  async function run(): Promise<string> {
    const process = new LineProcess(self.executable, args, env);
    // Not SIGKILL: the doctor has an exporter to end.
    const stopListening = listenForAbort(signal, () => void process.kill("SIGTERM"));
    try {
      return await process.nextLine();
    } finally {
      await process.endInput();
      stopListening();
    }
  }

  let running: Promise<string> | null = null;
  return () => {
    running ??= run().finally(() => {
      running = null;
    });
    return running;
  };
}
