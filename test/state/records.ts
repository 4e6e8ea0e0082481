import { IpcMemHandle } from "../../src/core/handle.js";
import type { RegionRecord } from "../../src/core/journal.js";
import { type OpenedStateFile, StateFile, type StateFileOptions } from "../../src/state/state-file.js";
import { StateFileError } from "../../src/state/state-file-error.js";

/** A record whose every other field follows from its generation. */
export function recordOf(generation: number | bigint, fields: Partial<RegionRecord> = {}): RegionRecord {
  const bytes = new Uint8Array(64).fill(Number(generation) % 251);
  return {
    generation: BigInt(generation),
    name: `region ${generation}`,
    handle: new IpcMemHandle(bytes),
    deviceId: 0,
    deviceUuid: "GPU-00000000-0000-0000-0000-000000000000",
    byteSize: 64n,
    offset: 0n,
    owner: "anonymous",
    session: null,
    protocol: "grpc",
    registeredAt: 1_700_000_000_000,
    leaseMs: null,
    exporter: null,
    labels: new Map(),
    ...fields,
  };
}

/** Everything of a record, the bytes of its handle too, as what `toEqual` can tell apart. */
export function plain(record: RegionRecord): object {
  const handle = Buffer.from(record.handle.exposeBytes()).toString("hex");
  return { ...record, handle, labels: [...record.labels] };
}

/** Opens a state file that nobody else wants. */
export function openState(
  path: string,
  options: Omit<StateFileOptions, "lock"> = {},
): Promise<OpenedStateFile> {
  return StateFile.open(path, { ...options, lock: async () => ({ release: async () => {} }) });
}

/** The generations that a state file has, after a start and a stop. */
export async function generationsIn(path: string, options: Omit<StateFileOptions, "lock"> = {}) {
  const { file, records } = await openState(path, options);
  await file.close();
  return records.map(({ generation }) => Number(generation));
}

/** What is wrong with the state file at `path`; fails if nothing is. */
export async function problemOf(path: string, options: Omit<StateFileOptions, "lock"> = {}) {
  const opened = await openState(path, options).catch((error: unknown) => error);
  if (opened instanceof StateFileError) return opened.message;
  throw new Error("expected a StateFileError", { cause: opened });
}
