import { RegistryError } from "../../core/errors.js";
import type { Duration } from "../gen/google/protobuf/duration.js";

/** Seconds of the longest Duration there can be: 10,000 years. */
const maxSeconds = 315_576_000_000n;
const nanosPerSecond = 1_000_000_000;

/**
 * Whole milliseconds, rounded up, of the field `name`; undefined if it is not there. Throws INVALID_ARGUMENT for what
 * is no Duration and for one that is negative.
 */
export function durationFromWire(name: string, duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const { seconds, nanos } = duration;
  if (seconds < 0n || nanos < 0) throw refusal(name, "must not be negative");
  if (seconds > maxSeconds || nanos >= nanosPerSecond) {
    throw refusal(name, `has at most ${maxSeconds} seconds and ${nanosPerSecond - 1} nanos`);
  }
  return Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
}

/** The Duration of so many milliseconds. */
export function durationToWire(ms: number): Duration {
  const whole = Math.round(ms);
  return { seconds: BigInt(Math.trunc(whole / 1000)), nanos: (whole % 1000) * 1_000_000 };
}

function refusal(name: string, problem: string): RegistryError {
  return new RegistryError("INVALID_ARGUMENT", `${name} ${problem}`);
}
