import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { DeviceAllocation } from "../native/device-memory.js";
import type { SelectedDriver } from "../native/driver-selection.js";

/** The commands of `cudashm allocate --interactive`, as its help prints them. */
export const allocationShellHelp = `  {"op":"read","offset":0,"byte_size":16}     answers {"b64":"..."}
  {"op":"write","offset":0,"b64":"aGVsbG8="}  answers {}
  {"op":"memory"}                             answers {"free_bytes":...,"total_bytes":...} of the device
  {"op":"free"}                               frees the memory, answers {}
`;

const maxReadBytes = 1 << 20;

/**
 * Answers each JSON line of `input` with one JSON line on `output`, in order, until the input ends or
 * `signal` aborts. A command that fails is answered {"error":"..."}.
 */
export async function runAllocationShell(
  driver: SelectedDriver,
  allocation: DeviceAllocation,
  input: Readable,
  output: Writable,
  signal: AbortSignal,
): Promise<void> {
  const lines = createInterface({ input, signal });
  for await (const line of lines) {
    const answer = await execute(driver, allocation, line).catch((error: unknown) => ({
      error: error instanceof Error ? error.message : String(error),
    }));
    output.write(`${JSON.stringify(answer)}\n`);
  }
}

async function execute(driver: SelectedDriver, allocation: DeviceAllocation, line: string): Promise<object> {
  const command = JSON.parse(line) as Record<string, unknown>;
  switch (command.op) {
    case "read": {
      const byteSize = wholeNumber(command, "byte_size");
      if (byteSize > maxReadBytes)
        throw new Error(`byte_size: expected at most ${maxReadBytes}, got ${byteSize}`);
      const bytes = Buffer.alloc(byteSize);
      await allocation.read(BigInt(wholeNumber(command, "offset")), bytes);
      return { b64: bytes.toString("base64") };
    }
    case "write": {
      if (typeof command.b64 !== "string") throw new Error("b64: expected the bytes to write, as base64");
      await allocation.write(BigInt(wholeNumber(command, "offset")), Buffer.from(command.b64, "base64"));
      return {};
    }
    case "memory": {
      const { freeBytes, totalBytes } = await driver.memoryInfo(allocation.deviceId);
      return { free_bytes: Number(freeBytes), total_bytes: Number(totalBytes) };
    }
    case "free":
      await allocation.free();
      return {};
    default:
      throw new Error("op: expected read, write, memory or free");
  }
}

function wholeNumber(command: Record<string, unknown>, member: string): number {
  const value = command[member];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new Error(`${member}: expected a whole number of bytes`);
}
