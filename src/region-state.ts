import type { Config } from "./config.js";
import type { RefusedAdoption } from "./core/adoption.js";
import type { RegionRegistry, RegistryOptions } from "./core/registry.js";
import type { Log } from "./log.js";
import { lockFile } from "./native/file-lock.js";
import type { OpenedStateFile } from "./state/state-file.js";

/** What of the regions outlives the process. */
export interface RegionState {
  /** What the registry has to be made with. */
  readonly registryOptions: Pick<RegistryOptions, "journal" | "generation" | "revision" | "observers">;
  /** Number of this start of the service, from 1. */
  readonly epoch: bigint;
  /**
   * Takes up the regions of the run before, as soon as the driver can be asked. Their names are taken from the call
   * on, so it has to be made before anyone else can register. Resolves when all were taken up or refused.
   */
  adopt(registry: RegionRegistry, whenUsable: Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** Opens the state file, if there is to be one. Rejects with StateFileError. */
export async function openRegionState(config: Config, log: Log): Promise<RegionState> {
  if (config.stateFile === null) {
    return { registryOptions: {}, epoch: 1n, adopt: async () => {}, close: async () => {} };
  }
  // Most services have no state file, and start sooner without what reads one.
  const { StateFile } = await import("./state/state-file.js");
  const opened = await StateFile.open(config.stateFile, {
    lock: lockFile,
    onCompactionError: (error) => log.warn({ err: error }, "the state file could not be made shorter"),
  });
  const { file, records, epoch, lastGeneration, lastRevision, cutBytes } = opened;
  if (cutBytes > 0)
    log.warn({ cutBytes }, "the state file ended in the middle of a line, which nobody was told of");
  return {
    registryOptions: {
      journal: file,
      generation: lastGeneration,
      revision: lastRevision,
      observers: [file.observe],
    },
    epoch,
    adopt: (registry, whenUsable) => adoptAll(registry, records, whenUsable, config.adoptUnverified, log),
    close: () => file.close(),
  };
}

async function adoptAll(
  registry: RegionRegistry,
  records: OpenedStateFile["records"],
  whenUsable: Promise<void>,
  allowsUnverified: boolean,
  log: Log,
): Promise<void> {
  let [adopted, forgotten, kept] = [0, 0, 0];
  await Promise.all(
    records.map(async (record) => {
      const refusal = await registry.adopt(record, { whenUsable, allowsUnverified });
      if (refusal === null) adopted++;
      else if (refusal.isForgotten) forgotten++;
      else kept++;
      if (refusal !== null) logRefusal(log, refusal);
    }),
  );
  const exception = forgotten + kept === 0 ? "" : ", but for those forgotten or kept for the next start";
  log.info({ adopted, forgotten, kept }, `regions of the run before were taken up${exception}`);
}

function logRefusal(log: Log, { name, generation, reason, isForgotten }: RefusedAdoption): void {
  const fate = isForgotten ? "is forgotten" : "stays in the state file for the next start";
  log.warn(
    { region: name, generation: String(generation), reason },
    `region of the run before was not taken up and ${fate}`,
  );
}
