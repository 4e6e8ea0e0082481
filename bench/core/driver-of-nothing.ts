import type { CudaDriver, DeviceMapping } from "../../dist/index.js";

/** Answers at once, so that what is left is the registry. */
export const driverOfNothing: CudaDriver = {
  kind: "emulated",
  health: { state: "usable" },
  async devices() {
    return [{ ordinal: 0, uuid: "GPU-0", pciBusId: "0000:00:00.0", name: "nothing", totalBytes: 2n ** 40n }];
  },
  async open(): Promise<DeviceMapping> {
    return {
      deviceId: 0,
      devicePointer: 0n,
      byteSize: 4096n,
      async read() {},
      async write() {},
      async checksum() {
        return 0;
      },
      async close() {},
      async [Symbol.asyncDispose]() {},
    };
  },
};
