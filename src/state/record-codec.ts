import type { Exporter } from "../core/exporter.js";
import { IpcMemHandle } from "../core/handle.js";
import type { RegionRecord, SessionRecord } from "../core/journal.js";
import type { Protocol } from "../core/region.js";

const protocols = { http: true, grpc: true, library: true } satisfies Record<Protocol, true>;

const maxUint64 = 2n ** 64n - 1n;
/** The last moment that a Date can be, in milliseconds. */
const maxTime = 8.64e15;

/** The record as JSON, 64-bit numbers as text. It has the handle in it, so it is as secret as that. */
export function recordToJson(record: RegionRecord): object {
  return {
    ...record,
    generation: String(record.generation),
    handle: Buffer.from(record.handle.exposeBytes()).toString("base64"),
    byteSize: String(record.byteSize),
    offset: String(record.offset),
    exporter: record.exporter && {
      ...record.exporter,
      startTime: String(record.exporter.startTime),
      pidNamespace: String(record.exporter.pidNamespace),
    },
    // Pairs: an object would not keep every key, nor their order.
    labels: [...record.labels],
  };
}

/** Throws if any part of it is missing or of another kind. */
export function recordFromJson(json: unknown): RegionRecord {
  const fields = object(json);
  return {
    generation: wide(fields.generation),
    name: text(fields.name),
    handle: new IpcMemHandle(Buffer.from(text(fields.handle), "base64")),
    deviceId: count(fields.deviceId),
    deviceUuid: text(fields.deviceUuid),
    byteSize: wide(fields.byteSize),
    offset: wide(fields.offset),
    owner: text(fields.owner),
    session: orNull(fields.session, session),
    protocol: protocol(fields.protocol),
    registeredAt: time(fields.registeredAt),
    leaseMs: orNull(fields.leaseMs, count),
    exporter: orNull(fields.exporter, exporter),
    labels: new Map(list(fields.labels).map(label)),
  };
}

/** A 64-bit number that is written as text. */
export function wide(json: unknown): bigint {
  const value = /^\d{1,20}$/.test(text(json)) ? BigInt(text(json)) : maxUint64 + 1n;
  if (value > maxUint64) throw new TypeError("not a 64-bit number in digits");
  return value;
}

export function object(json: unknown): Readonly<Record<string, unknown>> {
  if (typeof json !== "object" || json === null) throw new TypeError("not an object");
  return json as Record<string, unknown>;
}

function session(json: unknown): SessionRecord {
  const fields = object(json);
  return {
    id: text(fields.id),
    secretDigest: text(fields.secretDigest),
    owner: text(fields.owner),
    resumeGraceMs: count(fields.resumeGraceMs),
  };
}

function exporter(json: unknown): Exporter {
  const fields = object(json);
  return {
    pid: count(fields.pid),
    startTime: wide(fields.startTime),
    bootId: text(fields.bootId),
    pidNamespace: wide(fields.pidNamespace),
  };
}

function label(json: unknown): [string, string] {
  const [key, value] = list(json);
  return [text(key), text(value)];
}

function protocol(json: unknown): Protocol {
  if (!Object.hasOwn(protocols, text(json))) throw new TypeError("not a protocol");
  return json as Protocol;
}

function text(json: unknown): string {
  if (typeof json !== "string") throw new TypeError("not a text");
  return json;
}

function count(json: unknown): number {
  if (!Number.isSafeInteger(json) || (json as number) < 0) throw new TypeError("not a count");
  return json as number;
}

function time(json: unknown): number {
  if (count(json) > maxTime) throw new TypeError("not a time");
  return count(json);
}

function list(json: unknown): readonly unknown[] {
  if (!Array.isArray(json)) throw new TypeError("not a list");
  return json;
}

function orNull<T>(json: unknown, read: (json: unknown) => T): T | null {
  return json === null ? null : read(json);
}
