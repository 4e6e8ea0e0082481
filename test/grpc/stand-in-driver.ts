import type { CudaDevice, CudaDriver, DeviceMapping, DriverHealth } from "../../src/core/driver.js";

/** Bytes of every allocation that the stand-in opens. */
export const allocationBytes = 4096n;

/** A driver of two devices that opens every handle; an open can be held until the test lets it go. */
export class StandInDriver implements CudaDriver {
  readonly kind = "emulated";
  readonly health: DriverHealth = { state: "usable" };
  opens = 0;
  closes = 0;
  /** Replaced by a test to hold an open, or to make it fail. */
  beforeOpen: () => Promise<void> = () => Promise.resolve();
  /** Replaced by a test to make a close fail. */
  beforeClose: () => Promise<void> = () => Promise.resolve();

  devices(): Promise<readonly CudaDevice[]> {
    return Promise.resolve([device(0), device(1)]);
  }

  async open(deviceId: number): Promise<DeviceMapping> {
    await this.beforeOpen();
    this.opens++;
    const close = async () => {
      await this.beforeClose();
      this.closes++;
    };
    return {
      deviceId,
      devicePointer: 0xdead_0000n,
      byteSize: allocationBytes,
      read: () => Promise.resolve(),
      write: () => Promise.resolve(),
      close,
      [Symbol.asyncDispose]: close,
    };
  }
}

function device(ordinal: number): CudaDevice {
  return {
    ordinal,
    uuid: `GPU-${ordinal}`,
    pciBusId: `0000:0${ordinal}:00.0`,
    name: `stand-in ${ordinal}`,
    totalBytes: 2n ** 30n,
  };
}
