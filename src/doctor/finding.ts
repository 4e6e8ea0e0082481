/** `OK`: as it should be. `WARN`: may surprise. `FAIL`: memory cannot be shared until it is mended. */
export type FindingStatus = "OK" | "WARN" | "FAIL";

/** What is looked at. A report's readers rely on these names, which docs/doctor.md lists: they never change. */
export const checks = [
  "platform",
  "kernel",
  "c_library",
  "pid_namespace",
  "ipc_namespace",
  "user",
  "driver",
  "driver_capabilities",
  "visible_devices",
  "device_order",
  "device",
  "ipc_self_test",
] as const;

export type Check = (typeof checks)[number];

/** What a finding is made of, for machines; names in snake_case, null for what could not be told. */
export type Facts = Readonly<Record<string, string | number | boolean | null>>;

/** One look at the machine. */
export interface Finding {
  readonly check: Check;
  readonly status: FindingStatus;
  /** What was found. */
  readonly text: string;
  /** What to do; null if nothing is to be done. */
  readonly advice: string | null;
  readonly facts: Facts;
}

/** As it should be. */
export function ok(check: Check, text: string, facts: Facts = {}): Finding {
  return { check, status: "OK", text, advice: null, facts };
}

/** Not as it should be: `WARN` or `FAIL`, with what to do. */
export function problem(
  status: Exclude<FindingStatus, "OK">,
  check: Check,
  text: string,
  advice: string,
  facts: Facts = {},
): Finding {
  return { check, status, text, advice, facts };
}

/** The worst of them; `OK` if there are none. */
export function worst(statuses: readonly FindingStatus[]): FindingStatus {
  if (statuses.includes("FAIL")) return "FAIL";
  return statuses.includes("WARN") ? "WARN" : "OK";
}
