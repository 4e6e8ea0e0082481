import { join } from "node:path";
import { isFailure, loadAddon, type RawDriver, type RawMemory } from "../../dist/native/addon.js";
import { driverLibraryName, emulatedDriverFolder } from "../../dist/native/emulated-driver.js";

/** What a baseline does with what it is asked, below its transport. */
export interface Store {
  register(name: string, handle: Uint8Array, deviceId: number): Promise<void>;
  unregister(name: string): Promise<void>;
}

export type StoreKind = "nothing" | "map" | "native";

export function createStore(kind: StoreKind): Promise<Store> | Store {
  if (kind === "native") return createNativeStore();
  return kind === "map" ? createMapStore() : nothing;
}

const nothing: Store = { async register() {}, async unregister() {} };

/** The least that keeps regions: their names and numbers in a map, no driver. */
function createMapStore(): Store {
  const regions = new Map<string, { name: string; deviceId: number }>();
  return {
    async register(name, _handle, deviceId) {
      regions.set(name, { name, deviceId });
    },
    async unregister(name) {
      regions.delete(name);
    },
  };
}

/** The bare native open and close: the addon's calls and a map, no check, no state, no error text. */
async function createNativeStore(): Promise<Store> {
  const driver = await openDriver();
  const mappings = new Map<string, RawMemory>();
  return {
    async register(name, handle, deviceId) {
      const memory = await driver.open(deviceId, handle);
      if (isFailure(memory)) throw new Error(`${memory.call}: ${memory.name}`);
      mappings.set(name, memory);
    },
    async unregister(name) {
      const memory = mappings.get(name);
      mappings.delete(name);
      await memory?.close();
    },
  };
}

/** The addon's driver on the emulated library, initialised. */
async function openDriver(): Promise<RawDriver> {
  const driver = await loadAddon().loadDriver(join(emulatedDriverFolder(), driverLibraryName), 30_000);
  if (isFailure(driver)) throw new Error(`the emulated driver cannot be loaded: ${driver.text}`);
  await driver.initialise();
  return driver;
}
