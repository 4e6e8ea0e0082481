import type { Config } from "./config.js";
import type { RegionRegistry, RegistryOptions } from "./core/registry.js";
import type { Log } from "./log.js";
import { lockFile } from "./native/file-lock.js";
import { type OpenedStateFile, StateFile } from "./state/state-file.js";

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
  await Promise.all(
    records.map(async (record) => {
      const refusal = await registry.adopt(record, { whenUsable, allowsUnverified });
      if (refusal === null) return;
      const { name: region, generation, reason } = refusal;
      log.warn(
        { region, generation: String(generation), reason },
        "region of the run before was not taken up",
      );
    }),
  );
  const { adopted, refused } = registry.adoption;
  log.info({ adopted, refused: refused.length }, "regions of the run before were taken up");
}
