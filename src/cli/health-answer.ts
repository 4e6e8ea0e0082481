/** What a service said of its health, or why it said nothing. */
export interface HealthAnswer {
  readonly healthy: boolean;
  /** One line for a person. */
  readonly text: string;
}

export type HealthQuestion = "live" | "ready";

/** Where a service that listens on `address` is reached from its own machine. */
export function reachable(address: string): string {
  if (address === "0.0.0.0") return "127.0.0.1";
  return address === "::" ? "::1" : address;
}
