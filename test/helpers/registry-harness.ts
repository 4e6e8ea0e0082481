import { expect } from "vitest";
import type { ErrorCode } from "../../src/core/errors.js";
import { RegistryError } from "../../src/core/errors.js";
import type { IpcMemHandle } from "../../src/core/handle.js";
import type { CallContext, RegisterRequest, RegistryChange } from "../../src/core/region.js";
import { RegionRegistry, type RegistryOptions } from "../../src/core/registry.js";
import { FakeDriver } from "./fake-driver.js";

export const context: CallContext = { owner: "anonymous", protocol: "library", requestId: "test" };

export function contextWith(signal: AbortSignal): CallContext {
  return { ...context, signal };
}

export function request(
  name: string,
  handle: IpcMemHandle,
  fields: Partial<RegisterRequest> = {},
): RegisterRequest {
  return { name, handle, deviceId: 0n, byteSize: 64n, ...fields };
}

/** A registry on a fake driver, and every change its observers were told. */
export function createHarness(options: Omit<RegistryOptions, "driver"> = {}) {
  const driver = new FakeDriver();
  const changes: RegistryChange[] = [];
  const observers = [
    (change: RegistryChange) => {
      changes.push(change);
    },
    ...(options.observers ?? []),
  ];
  const registry = new RegionRegistry({ ...options, driver, observers });
  return {
    driver,
    registry,
    changes,
    names: () => registry.statuses().map(({ name }) => name),
    kinds: () => changes.map(({ kind, region }) => `${kind} ${region.name}`),
  };
}

/** The RegistryError that `promise` rejects with; fails if it resolves, or rejects with anything else. */
export async function rejection(promise: Promise<unknown>): Promise<RegistryError> {
  const error = await promise.then(
    (value) => expect.fail(`resolved with ${String(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RegistryError);
  return error as RegistryError;
}

export async function expectRejection(
  promise: Promise<unknown>,
  code: ErrorCode,
  message: string | RegExp,
): Promise<RegistryError> {
  const error = await rejection(promise);
  expect({ code: error.code, message: error.message }).toEqual({
    code,
    message: typeof message === "string" ? message : expect.stringMatching(message),
  });
  return error;
}

/** Lets everything run that waits for nothing but promises that are settled already. */
export function untilIdle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
