import { expect } from "vitest";
import type { SentHeaders } from "./face-client.js";
import {
  type EventView,
  type ExporterView,
  FaceRefusal,
  type RegistrationFields,
  type RegistryFaceClient,
} from "./registry-face-client.js";
import type { Caller, ServiceName } from "./registry-services.js";
import type { HeldSession } from "./registry-session.js";

/** Memory of another process. */
export interface Memory {
  readonly byteSize: bigint;
  /** The process that it is of. */
  readonly exporter: ExporterView;
  /** What registers so much of it, 64 bytes from its start unless given. */
  part(byteSize?: bigint, offset?: bigint): RegistrationFields;
  read(offset: number, byteSize: number): Promise<Buffer>;
  write(offset: number, bytes: Buffer): Promise<void>;
}

/** A process that can be ended. */
export interface Mortal {
  readonly exporter: ExporterView;
  end(): Promise<void>;
}

/** Both faces of a service as one caller has them. */
export interface Doors {
  /** The face under test. */
  readonly face: RegistryFaceClient;
  /** The other face of the same service. */
  readonly other: RegistryFaceClient;
}

export interface RegistryFixture extends Doors {
  /** The faces, called by whoever has this token, or with these headers. */
  as(caller: Caller | SentHeaders): Doors;
  /** A session, held by a stream of gRPC, as whoever has this token. */
  hold(options?: { resume?: string; grace_ms?: number }, caller?: Caller): Promise<HeldSession>;
  readonly memory: Memory;
  /** A second allocation. */
  readonly otherMemory: Memory;
  startMortal(): Promise<Mortal>;
  /** Handles that the service's driver has open, and those that it opened in all. */
  openHandles(): number;
  opens(): number;
  /** Resolves once the service is answering so many calls: what waits has begun to. */
  untilInFlight(count: number): Promise<void>;
}

/** Something that both faces promise. */
export interface RegistryCase {
  readonly title: string;
  /** How the service is set up; Triton's way unless given. */
  readonly on?: ServiceName;
  run(fixture: RegistryFixture): Promise<void>;
}

/** What a call is refused with; fails if it is not. */
export async function refusalOf(call: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await call.then(
    (value) => expect.fail(`answered ${String(value)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof FaceRefusal)) throw error;
  return { code: error.code, message: error.message };
}

export async function expectRefusal(
  call: Promise<unknown>,
  code: string,
  message: string | RegExp,
): Promise<void> {
  expect(await refusalOf(call)).toEqual({
    code,
    message: typeof message === "string" ? message : expect.stringMatching(message),
  });
}

/** Both faces refuse it with one code and one text, for texts that cannot be known here. */
export async function expectRefusalAlike(
  { face, other }: Doors,
  call: (face: RegistryFaceClient) => Promise<unknown>,
  code: string,
  message: RegExp,
): Promise<void> {
  await expectRefusal(call(face), code, message);
  expect(await refusalOf(call(other))).toEqual(await refusalOf(call(face)));
}

/** An event, by what of it matters most. */
export function changeOf(kind: string, name: string, reason = "requested", region: object = {}): EventView {
  return {
    change: expect.objectContaining({
      kind,
      reason,
      region: expect.objectContaining({ name, reason, ...region }),
    }),
  };
}

/** Begins a write and waits until it has its pin. */
export async function pinned(face: RegistryFaceClient, name: string) {
  const upload = face.beginWrite(name);
  await expect.poll(async () => (await face.get(name)).pins, { interval: 5 }).toBe(1n);
  return upload;
}

/** Every call there is, of a region `r`. */
export function everyCall(face: RegistryFaceClient, memory: Memory): readonly (() => Promise<unknown>)[] {
  return [
    () => face.server(),
    () => face.devices(),
    () => face.get("r"),
    () => face.list(),
    () => face.register("r", memory.part()),
    () => face.renew("r"),
    () => face.unregister("r"),
    () => face.watch(),
    () => face.readContents("r"),
    () => face.writeContents("r", Buffer.of(1)),
    () => face.checksum("r"),
  ];
}

export const names = (regions: readonly { readonly name: string }[]): string[] =>
  regions.map(({ name }) => name);

export const maxUint64 = 2n ** 64n - 1n;

export const noSuchRegion = (name: string): string => `Unable to find cuda shared memory region: '${name}'`;
export const taken = (name: string): string => `shared memory region '${name}' already in manager`;
export const invalidArgs = (name: string, problem: string): string =>
  `failed to register shared memory region '${name}': invalid args: ${problem}`;
export const notOwner = (name: string): string =>
  `shared memory region '${name}' belongs to another client; call as its owner or with an admin's token`;
