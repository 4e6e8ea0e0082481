import { readOptions } from "../config/read-options.js";
import { emulatedDriverFolder } from "../native/emulated-driver.js";
import type { Command, CommandIo, CommandResult } from "./command.js";

/** Prints where the emulated driver lies, for LD_LIBRARY_PATH. */
export const emulatedDriver: Command = {
  help: () => `Usage: cudashm emulated-driver

Prints the folder that holds the emulated libcuda.so.1, so that any program over the CUDA driver API can
run on it:

  LD_LIBRARY_PATH="$(cudashm emulated-driver)" python3 my_exporter.py
`,

  async run(io: CommandIo): Promise<CommandResult> {
    readOptions({}, io.args, io.env);
    io.stdout.write(`${emulatedDriverFolder()}\n`);
    return { code: 0 };
  },
};
