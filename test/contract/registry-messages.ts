import type { ContentsRange, RegionView, RegistrationFields } from "./registry-face-client.js";

// biome-ignore lint/suspicious/noExplicitAny: whatever proto-loader makes of it.
export type Message = any;

/** What a Region says. */
export function regionView({ lease, ...message }: Message): RegionView {
  const { state, reason, session, exporter } = message;
  return {
    ...withBigints(message, [
      "device_id",
      "byte_size",
      "offset",
      "allocation_byte_size",
      "pins",
      "generation",
    ]),
    state: wordOf("REGION_STATE_", state),
    reason: wordOf("REASON_", reason),
    session: session === "" ? null : session,
    registered_at: msOf(message.registered_at),
    last_used_at: msOf(message.last_used_at),
    lease_ms: msOf(lease),
    lease_expires_at: msOf(message.lease_expires_at),
    exporter: exporter && withBigints(exporter, ["pid", "start_time", "pid_namespace"]),
  };
}

/** The message, these fields of which hold whole numbers. */
export function withBigints(message: Message, fields: readonly string[]): Message {
  return { ...message, ...Object.fromEntries(fields.map((field) => [field, BigInt(message[field])])) };
}

/** The word that an enum's value has after its prefix. */
export function wordOf(prefix: string, value: string): string {
  if (!value.startsWith(prefix)) throw new Error(`${value} is no ${prefix}`);
  return value.slice(prefix.length).toLowerCase();
}

/** Milliseconds of a Timestamp or a Duration; null if there is none. */
function msOf(time: { readonly seconds: string; readonly nanos: number } | null): number | null {
  return time === null ? null : Number(time.seconds) * 1000 + time.nanos / 1e6;
}

/** The Duration of so many milliseconds. */
export function durationOf(ms: number | undefined): object | undefined {
  return ms === undefined ? undefined : { seconds: Math.trunc(ms / 1000), nanos: (ms % 1000) * 1e6 };
}

/** A range as requests have it. */
export function rangeOf({ offset, byte_size }: ContentsRange): object {
  return { offset: offset?.toString(), byte_size: byte_size?.toString() };
}

/** A RegisterRequest. */
export function requestOf(name: string, registration: RegistrationFields): object {
  const { device_id, byte_size, offset, lease_ms, exporter, replace_generation, ...same } = registration;
  return {
    ...same,
    name,
    device_id: device_id?.toString(),
    byte_size: byte_size.toString(),
    offset: offset?.toString(),
    lease: durationOf(lease_ms),
    exporter: exporter && {
      ...exporter,
      pid: exporter.pid && Number(exporter.pid),
      start_time: exporter.start_time?.toString(),
      pid_namespace: exporter.pid_namespace?.toString(),
    },
    replace_generation: replace_generation?.toString(),
  };
}
