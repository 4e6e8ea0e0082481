import { readFile } from "node:fs/promises";
import { driverOptions } from "../config/driver-options.js";
import { optionsHelp } from "../config/help.js";
import { boolean, integer, optional } from "../config/option.js";
import { readOptions } from "../config/read-options.js";
import { DriverError } from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import type { Exporter } from "../core/exporter.js";
import type { IpcMemHandle } from "../core/handle.js";
import { createCudaDriver, type SelectedDriver } from "../native/driver-selection.js";
import { currentExporter } from "../native/exporter-identity.js";
import { allocationShellHelp, runAllocationShell } from "./allocation-shell.js";
import type { Command, CommandIo, CommandResult } from "./command.js";
import { fill, fillPattern } from "./fill.js";

const options = {
  device: {
    flag: "device",
    kind: integer(0, 2 ** 31 - 1, "ORDINAL"),
    default: 0,
    group: "Memory",
    help: "The device to allocate on.",
  },
  bytes: {
    flag: "bytes",
    kind: integer(1, Number.MAX_SAFE_INTEGER, "BYTES"),
    default: 4096,
    group: "Memory",
    help: "How much to allocate.",
  },
  fill: {
    flag: "fill",
    kind: optional(fillPattern),
    default: null,
    group: "Memory",
    help: "Fill the memory with a byte (0 to 255, or 0x00 to 0xff) or with a text, repeated.",
  },
  exporter: {
    flag: "exporter",
    kind: boolean,
    default: false,
    group: "Memory",
    help: "Print also what tells this process from all others, so that what is registered with it at /v1 ends with it.",
  },
  interactive: {
    flag: "interactive",
    kind: boolean,
    default: false,
    group: "Memory",
    help: "Answer commands on standard input, one JSON object a line, as listed above.",
  },
  ...driverOptions,
} as const;

/** The exporter's side in one command: allocates, prints a register body, holds the memory. */
export const allocate: Command = {
  help: () => `Usage: cudashm allocate [options]

Allocates GPU memory and prints one JSON line that registers it when posted as it is:

  cudashm allocate > body.json     # and, while that holds the memory, in another terminal:
  curl --data @body.json http://127.0.0.1:8000/v2/cudasharedmemory/region/demo/register

Holds the memory until standard input closes or a signal comes (Ctrl-C), then frees it; with
"< /dev/null" it is freed at once. Hints go to standard error. With --interactive, commands on
standard input reach the memory:

${allocationShellHelp}${optionsHelp(options)}`,

  async run(io: CommandIo): Promise<CommandResult> {
    const { values } = readOptions(options, io.args, io.env);
    const driver = createCudaDriver({
      preference: values.driver,
      ...(values.driverLibrary === null ? {} : { libraryPath: values.driverLibrary }),
      contextLingerMs: 0,
      warn: (text) => io.stderr.write(`cudashm: ${text}\n`),
    });
    driver.start();
    try {
      await assertDevice(driver, values.device);
      await using allocation = await driver.allocate(values.device, BigInt(values.bytes));
      if (values.fill !== null) await fill(allocation, allocation.byteSize, values.fill);
      const exporter = values.exporter ? await currentExporter() : null;
      io.stdout.write(registerBody(await allocation.exportHandle(), allocation, exporter));
      io.stderr.write(
        `holding ${allocation.byteSize} bytes on device ${allocation.deviceId} (${driver.kind} driver) until standard input closes or Ctrl-C\n`,
      );
      if (values.interactive) {
        await runAllocationShell(driver, allocation, io.stdin, io.stdout, io.signal);
      } else {
        await ended(io);
      }
    } catch (error) {
      if (!(error instanceof DriverError || error instanceof RegistryError)) throw error;
      io.stderr.write(`cudashm: cannot allocate: ${error.message}\n`);
      return { code: 1 };
    } finally {
      io.stdin.destroy();
    }
    return { code: 0 };
  },
};

/** Throws NOT_FOUND, naming the devices there are. */
async function assertDevice(driver: SelectedDriver, ordinal: number): Promise<void> {
  const devices = await driver.devices();
  if (devices.some((device) => device.ordinal === ordinal)) return;
  const known = devices.map((device) => `${device.ordinal} (${device.name})`).join(", ");
  throw new RegistryError("NOT_FOUND", `there is no device ${ordinal}; the devices: ${known}`);
}

function registerBody(
  handle: IpcMemHandle,
  of: { readonly deviceId: number; readonly byteSize: bigint },
  exporter: Exporter | null,
): string {
  const b64 = Buffer.from(handle.exposeBytes()).toString("base64");
  const from = exporter === null ? "" : `,"exporter":${exporterJson(exporter)}`;
  return `{"raw_handle":{"b64":"${b64}"},"device_id":${of.deviceId},"byte_size":${of.byteSize}${from}}\n`;
}

function exporterJson({ pid, startTime, bootId, pidNamespace }: Exporter): string {
  return `{"pid":${pid},"start_time":${startTime},"boot_id":"${bootId}","pid_namespace":${pidNamespace}}`;
}

async function ended(io: CommandIo): Promise<void> {
  // The kernel stops a background job that reads its terminal: such a one waits for a signal only.
  const readsInput = io.stdin.isTTY !== true || (await isInForeground());
  if (io.signal.aborted) return;
  // Waiting for a signal does not keep a process alive; a timer does.
  const alive = setInterval(() => {}, 2 ** 30);
  await new Promise<void>((resolve) => {
    io.signal.addEventListener("abort", () => resolve(), { once: true });
    if (readsInput) io.stdin.once("end", resolve).once("error", resolve).resume();
  });
  clearInterval(alive);
}

/** Whether this process belongs to its terminal's foreground group, from proc(5): pgrp and tpgid. */
async function isInForeground(): Promise<boolean> {
  const stat = await readFile("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[2] === fields[5];
}
