import { type Attributes, type Span, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import { type CudaDevice, type CudaDriver, type DeviceMapping, DriverError } from "../core/driver.js";
import { RegistryError } from "../core/errors.js";
import type { IpcMemHandle } from "../core/handle.js";

/** A driver whose opens and closes are spans, under that of the request that asked for them. */
export class TracedDriver implements CudaDriver {
  readonly #driver: CudaDriver;
  readonly #tracer: Tracer;

  constructor(driver: CudaDriver, tracer: Tracer) {
    this.#driver = driver;
    this.#tracer = tracer;
  }

  get kind() {
    return this.#driver.kind;
  }

  get health() {
    return this.#driver.health;
  }

  get knownDevices(): readonly CudaDevice[] | null {
    return this.#driver.knownDevices ?? null;
  }

  devices(): Promise<readonly CudaDevice[]> {
    return this.#driver.devices();
  }

  async open(deviceId: number, handle: IpcMemHandle): Promise<DeviceMapping> {
    const attributes = attributesOf(this.#driver, deviceId);
    const mapping = await within(this.#tracer, "driver open", attributes, () =>
      this.#driver.open(deviceId, handle),
    );
    return new TracedMapping(mapping, this.#tracer, attributesOf(this.#driver, deviceId));
  }

  async freeBytes(deviceId: number): Promise<bigint | null> {
    return (await this.#driver.freeBytes?.(deviceId)) ?? null;
  }
}

class TracedMapping implements DeviceMapping {
  readonly #mapping: DeviceMapping;
  readonly #tracer: Tracer;
  readonly #attributes: Attributes;
  readonly deviceId: number;
  readonly byteSize: bigint;

  constructor(mapping: DeviceMapping, tracer: Tracer, attributes: Attributes) {
    this.#mapping = mapping;
    this.#tracer = tracer;
    this.#attributes = attributes;
    this.deviceId = mapping.deviceId;
    this.byteSize = mapping.byteSize;
  }

  // An accessor, so that printing the object does not show it.
  get devicePointer(): bigint {
    return this.#mapping.devicePointer;
  }

  read(offset: bigint, into: Uint8Array): Promise<void> {
    return this.#mapping.read(offset, into);
  }

  write(offset: bigint, from: Uint8Array): Promise<void> {
    return this.#mapping.write(offset, from);
  }

  checksum(offset: bigint, byteSize: bigint, seed?: number): Promise<number> {
    return this.#mapping.checksum(offset, byteSize, seed);
  }

  close(): Promise<void> {
    return within(this.#tracer, "driver close", this.#attributes, () => this.#mapping.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function attributesOf(driver: CudaDriver, deviceId: number): Attributes {
  return { "cudashm.driver": driver.kind ?? "none", "cudashm.device": deviceId };
}

async function within<T>(
  tracer: Tracer,
  name: "driver open" | "driver close",
  attributes: Attributes,
  run: () => Promise<T>,
): Promise<T> {
  const span = tracer.startSpan(name, { attributes });
  try {
    const result = await run();
    span.setAttribute("cudashm.outcome", "OK");
    return result;
  } catch (error) {
    fail(span, error, name === "driver close" || !isRefusal(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Whether an open failed by what the client sent, or by how much. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof DriverError ||
    (error instanceof RegistryError && error.code !== "UNAVAILABLE" && error.code !== "INTERNAL")
  );
}

/** Only the error's name: its text may be about anything. */
function fail(span: Span, error: unknown, isFault: boolean): void {
  const outcome =
    error instanceof DriverError
      ? error.cudaError
      : error instanceof RegistryError
        ? (error.driver?.cudaError ?? error.code)
        : "INTERNAL";
  span.setAttribute("cudashm.outcome", outcome);
  if (!isFault) return;
  span.setAttribute("error.type", outcome);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
