import { expect } from "vitest";
import { HttpCaller } from "../kill/http-caller.js";
import { anonymous } from "../kill/running-service.js";
import type { Answer, FaceClient, Request } from "./answer.js";
import type { ChangeBook } from "./change-book.js";
import { GrpcFaceClient } from "./grpc-face-client.js";
import { HttpFaceClient } from "./http-face-client.js";
import type { LoadedService } from "./loaded-service.js";
import type { PeerProxy } from "./peer-proxy.js";
import type { SharedMemory } from "./shared-memory.js";

/** A region as GET /v1/regions lists it, as far as it is looked at here. */
interface Region {
  readonly name: string;
  readonly state: string;
  readonly device_id: number;
  readonly byte_size: number;
  readonly pins: number;
  readonly generation: number;
  readonly fingerprint: string;
}

/** Leases may end while one looks, and what the driver refuses to close is tried again. */
const mostTries = 50;

export interface QuietAuditOptions {
  readonly service: LoadedService;
  /** A way to it over gRPC. */
  readonly line: PeerProxy;
  readonly book: ChangeBook;
  readonly names: readonly string[];
  readonly memory: SharedMemory;
}

/**
 * Compares what a service without clients has, by everything that tells of it, and leaves it with nothing: each name
 * can be registered, and unregistered, after that.
 */
export async function auditQuiet({ service, line, book, names, memory }: QuietAuditOptions): Promise<void> {
  using http = new HttpFaceClient(service.httpAddress);
  using grpc = new GrpcFaceClient(line);
  using reader = new HttpCaller(service.httpAddress);
  const faces = [http, grpc];
  // The book's own watch is a request, too.
  await service.untilQuiet(undefined, 1);
  const { listed, views, driver } = await untilStable(reader, async () => {
    const listed = await regionsOf(reader);
    return { listed, views: await viewsOf(faces, names), driver: await driverOf(service) };
  });
  for (const view of views) expect(view).toEqual(namesOf(listed));
  for (const { name, state, pins } of listed) {
    expect(["ready", "close_failed"], `${name} is ${state}`).toContain(state);
    expect(pins, `pins of ${name}`).toBe(0);
  }
  const mapped = new Set(listed.map((region) => `${region.device_id} ${region.fingerprint}`)).size;
  expect(driver).toEqual({ openHandles: mapped, importedAllocations: mapped, mappings: mapped });

  // All of them first: no handle can be registered again before every close of it that failed has been done.
  for (const name of names) await releaseUntilGone(http, name);
  for (const name of names) {
    const { generation } = (await registerUntilDone(grpc, name, memory)).body;
    await releaseUntilGone(http, name);
    await book.untilGone(name, Number(generation));
  }
  expect(book.problems).toEqual([]);
  expect(Object.fromEntries(book.regions)).toEqual({});
  for (const view of await viewsOf(faces, names)) expect(view).toEqual([]);
  expect(await driverOf(service)).toEqual({ openHandles: 0, importedAllocations: 0, mappings: 0 });
}

/** What was looked at while nothing changed. */
async function untilStable<Seen>(reader: HttpCaller, look: () => Promise<Seen>): Promise<Seen> {
  const revision = async () => (await reader.get<{ revision: number }>("/v1", anonymous)).revision;
  for (let tries = 0; tries < mostTries; tries++) {
    const before = await revision();
    const seen = await look();
    if ((await revision()) === before) return seen;
  }
  throw new Error("regions change although nobody changes them");
}

async function regionsOf(reader: HttpCaller): Promise<readonly Region[]> {
  return (await reader.get<{ regions: Region[] }>("/v1/regions?page_size=1000", anonymous)).regions;
}

/** The names that there are, as the status of all and as the status of each tell it, over each face. */
async function viewsOf(faces: readonly FaceClient[], names: readonly string[]): Promise<readonly string[][]> {
  const views: string[][] = [];
  for (const face of faces) {
    const all = (await ask(face, { op: "statusAll" })).body;
    views.push(
      Array.isArray(all) ? namesOf(all) : Object.keys((all.regions as object | undefined) ?? {}).sort(),
    );
    const found: string[] = [];
    for (const name of names) {
      const { code } = await ask(face, { op: "status", name });
      if (code === "OK") found.push(name);
      else expect(code).toBe("NOT_FOUND");
    }
    views.push(found);
  }
  return views;
}

async function driverOf(service: LoadedService) {
  return {
    openHandles: service.calls.openHandles(),
    importedAllocations: service.footprint().importedAllocations,
    mappings: (await service.metrics()).sum("cudashm_mappings"),
  };
}

/** What the driver refuses is tried again, nothing else. Not by force: what an ended session left is not ours. */
async function releaseUntilGone(face: FaceClient, name: string): Promise<void> {
  await untilDone(face, { op: "release", name, waitMs: 10_000, force: false }, "NOT_FOUND");
}

function registerUntilDone(face: FaceClient, name: string, memory: SharedMemory): Promise<Answer> {
  const options = {
    offset: 0,
    labels: {},
    leaseSeconds: null,
    exporter: null,
    replaces: null,
    dryRun: false,
  };
  return untilDone(face, { op: "register", name, memory, options }, "OK");
}

async function untilDone(face: FaceClient, request: Request, done: string): Promise<Answer> {
  for (let tries = 0; tries < mostTries; tries++) {
    const answer = await ask(face, request);
    if (answer.code === done) return answer;
    if (answer.code !== "OK")
      expect(`${answer.code}: ${answer.text}`).toMatch(/CUDA_ERROR_|could not be closed/);
  }
  throw new Error(`${request.op} was not done in ${mostTries} tries`);
}

function ask(face: FaceClient, request: Request): Promise<Answer> {
  return face.call(request, null, null);
}

function namesOf(regions: readonly { readonly name: string }[]): string[] {
  return regions.map(({ name }) => name);
}
