import { randomBytes } from "node:crypto";
import { type CudaDriver, type DeviceMapping, DriverError, type DriverKind } from "../core/driver.js";
import { IpcMemHandle } from "../core/handle.js";
import { type Finding, ok, problem } from "./finding.js";

/** Another process that holds an allocation of {@link selfTestBytes} and can read and write it. */
export interface SelfTestExporter extends AsyncDisposable {
  readonly body: { readonly raw_handle: { readonly b64: string } };
  read(offset: number, byteSize: number): Promise<Buffer>;
  write(offset: number, bytes: Buffer): Promise<void>;
}

/** What the self-test shares, in bytes. */
export const selfTestBytes = 65_536;

/**
 * Opens another process's memory on a device, compares bytes both ways and closes it: the only proof that
 * memory can be shared. Whatever goes wrong is the finding.
 */
export async function ipcSelfTest(
  driver: CudaDriver,
  ordinal: number,
  startExporter: () => Promise<SelfTestExporter>,
): Promise<Finding> {
  const facts = { ordinal, byte_size: selfTestBytes };
  try {
    await using exporter = await step("an exporter process could not allocate", startExporter());
    const handle = new IpcMemHandle(Buffer.from(exporter.body.raw_handle.b64, "base64"));
    const mapping = await step("its handle could not be opened", driver.open(ordinal, handle));
    try {
      await compareBothWays(mapping, exporter);
    } catch (error) {
      // Whatever the close says then, the first failure is the one to tell.
      await mapping.close().catch(() => {});
      throw error;
    }
    await step("the opened memory could not be closed", mapping.close());
  } catch (error) {
    const text = `device ${ordinal}: ${textOf(error)}`;
    return problem("FAIL", "ipc_self_test", text, adviceFor(error, driver.kind), facts);
  }
  const text = `device ${ordinal}: another process's memory was opened, both saw each other's bytes, and it was closed`;
  return ok("ipc_self_test", text, facts);
}

async function compareBothWays(mapping: DeviceMapping, exporter: SelfTestExporter): Promise<void> {
  const fromExporter = randomBytes(selfTestBytes);
  await step("the exporter could not write", exporter.write(0, fromExporter));
  const seenHere = Buffer.alloc(selfTestBytes);
  await step("the opened memory could not be read", mapping.read(0n, seenHere));
  if (!seenHere.equals(fromExporter))
    throw new Error("the opened memory has not the bytes that the exporter wrote");
  const fromHere = randomBytes(selfTestBytes);
  await step("the opened memory could not be written", mapping.write(0n, fromHere));
  const seenThere = await step("the exporter could not read", exporter.read(0, selfTestBytes));
  if (!seenThere.equals(fromHere))
    throw new Error("the exporter does not see the bytes that were written here");
}

async function step<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`${what}: ${textOf(cause)}`, { cause });
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const advices: Readonly<Record<number, string>> = {
  2: "free memory on the device",
  46: "set the device's compute mode to default (nvidia-smi -c DEFAULT)",
  400: "serve on a machine whose driver shares memory between processes: WSL2's does not",
  801: "serve on a machine whose driver shares memory between processes: Jetson's does not",
};

function adviceFor(error: unknown, kind: DriverKind | null): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const known = kind === "cuda" && cause instanceof DriverError ? advices[cause.cudaCode] : undefined;
  return known ?? "mend the cause that is named: until then no memory of this device can be registered";
}
