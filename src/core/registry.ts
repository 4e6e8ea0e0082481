import type { CudaDriver } from "./driver.js";
import { RegistryError } from "./errors.js";
import type { CallContext, RegionPin, RegionStatus, RegisterRequest, RegistryObserver } from "./region.js";

export interface RegistryOptions {
  readonly driver: CudaDriver;
  readonly observers?: readonly RegistryObserver[];
  /** Milliseconds since the epoch; for tests. */
  readonly now?: () => number;
}

/** Part of a region, in bytes from its start. */
export interface RegionWindow {
  readonly offset: bigint;
  readonly byteSize: bigint;
}

/** The one owner of native handles: opens them, keeps them mapped, lists them, closes them. */
export class RegionRegistry implements AsyncDisposable {
  constructor(_options: RegistryOptions) {}

  /** Grows by one with every visible change; equal revisions have equal statuses. */
  get revision(): bigint {
    return 0n;
  }

  register(_request: RegisterRequest, _context: CallContext): Promise<RegionStatus> {
    throw new RegistryError("UNIMPLEMENTED", "not yet");
  }

  unregister(_name: string, _context: CallContext): Promise<void> {
    throw new RegistryError("UNIMPLEMENTED", "not yet");
  }

  unregisterAll(_context: CallContext): Promise<void> {
    throw new RegistryError("UNIMPLEMENTED", "not yet");
  }

  /** Every region, sorted by the bytes of its name. */
  statuses(): readonly RegionStatus[] {
    return [];
  }

  /** One region. Throws NOT_FOUND. */
  status(_name: string): RegionStatus {
    throw new RegistryError("NOT_FOUND", "not yet");
  }

  /** Holds a region (or a window of it) open. Throws NOT_FOUND or OUT_OF_RANGE. */
  pin(_name: string, _window: RegionWindow | null, _context: CallContext): RegionPin {
    throw new RegistryError("NOT_FOUND", "not yet");
  }

  /** Refuses registers from now on; everything else is still answered. */
  refuseRegisters(): void {}

  /** Closes every mapping; resolves when the driver has them all back. The second call waits for the first. */
  async close(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
