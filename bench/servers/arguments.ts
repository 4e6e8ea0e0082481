import { parseArgs } from "node:util";
import type { StoreKind } from "./store.js";

export interface ServerArguments {
  readonly port: number;
  readonly store: StoreKind;
  /** How many regions a status of all has. */
  readonly regions: number;
}

/** Reads `PORT [--store=nothing|map|native] [--regions=N]`, and has the server end by SIGTERM with its profile. */
export function readServerArguments(): ServerArguments {
  process.on("SIGTERM", () => process.exit());
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      store: { type: "string", default: "nothing" },
      regions: { type: "string", default: "0" },
    },
  });
  return {
    port: Number(positionals[0]),
    store: values.store as StoreKind,
    regions: Number(values.regions),
  };
}

/** The name of region `index` where there are many, of the product and of the baselines alike. */
export function regionName(index: number): string {
  return `region-${index}`;
}
