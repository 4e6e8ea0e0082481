import { expect } from "vitest";
import { crc32c } from "../helpers/crc32c.js";
import type { DoomedService } from "./doomed-service.js";
import { type Allocation, patternOf } from "./exporter-host.js";
import type { HttpCaller } from "./http-caller.js";
import type { Fact, Ledger, May } from "./ledger.js";
import type { Caller } from "./outcome.js";
import type { SeededRandom } from "./seeded-random.js";

/** A region as GET /v1/regions shows it, as far as it is looked at here. */
interface Region {
  readonly name: string;
  readonly byte_size: number;
  readonly lease_seconds: number | null;
  readonly generation: number;
}

/** The service as GET /v1 shows it, as far as it is looked at here. */
export interface ServerState {
  readonly instance_id: string;
  readonly epoch: number;
  readonly adoption: {
    readonly pending: number;
    readonly adopted: number;
    readonly refused: readonly Refusal[];
  };
}

interface Refusal {
  readonly name: string;
  readonly generation: number;
  readonly reason: string;
}

export interface AuditOptions {
  readonly service: DoomedService;
  readonly http: HttpCaller;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  /** Who may see everything. */
  readonly caller: Caller;
  /** Whether regions of the run before were taken up, rather than registered in this one. */
  readonly isRestarted: boolean;
}

/**
 * Compares what the service has with what the ledger allows, and settles the ledger on what is there: the regions as
 * they are listed, their contents, and what the driver has open for them. No call may be under way.
 */
export async function audit(options: AuditOptions): Promise<readonly Fact[]> {
  const { service, http, ledger, random, caller, isRestarted } = options;
  const regions = await listAll(http, caller, 1 + random.below(60));
  const found = new Map(regions.map((region) => [region.name, region]));
  for (const { name } of regions) expect(ledger.names, `${name} was never acknowledged`).toContain(name);
  const facts: Fact[] = [];
  for (const name of ledger.names) {
    const region = found.get(name);
    const fact = matching(ledger.may(name), region);
    if (fact === undefined) {
      expect({ found: region ?? null, acknowledged: ledger.may(name).map(factText) }).toBe("allowed");
    }
    if (fact && region) {
      expect(region).toMatchObject(regionOf(fact, isRestarted));
      facts.push({ ...fact, generation: region.generation });
    }
    ledger.settle(name, facts.at(-1)?.name === name ? (facts.at(-1) as Fact) : null);
  }
  const listed = await http.get<{ name: string }[]>("/v2/cudasharedmemory/status", caller);
  expect(listed.map(({ name }) => name)).toEqual(regions.map(({ name }) => name));
  for (const fact of facts) if (random.percent(25)) await assertContents(http, caller, fact, random);
  await assertMappings(service, http, caller, facts);
  return facts;
}

/** What may have become of a region, in words for whoever reads a failure. */
export function factText(fact: May): string {
  if (fact === null) return "nothing";
  const { byteSize, generation, owner, session, isExporterNamed, allocation } = fact;
  const exporter = `${isExporterNamed ? "named" : "unnamed"} ${allocation.host.isAlive ? "live" : "dead"}`;
  return `${byteSize} bytes, generation ${generation}, of ${owner}, grace ${session?.graceSeconds}, ${exporter} exporter`;
}

function matching(may: readonly May[], region: Region | undefined): May | undefined {
  if (region === undefined) return may.find((fact) => fact === null);
  return may.find(
    (fact) =>
      fact?.byteSize === region.byte_size &&
      fact.leaseSeconds === region.lease_seconds &&
      (fact.generation === null || fact.generation === region.generation),
  );
}

function regionOf({ allocation, session, ...fact }: Fact, isRestarted: boolean) {
  const { identity } = allocation.host;
  const exporter = {
    pid: identity.pid,
    start_time: Number(identity.startTime),
    boot_id: identity.bootId,
    pid_namespace: Number(identity.pidNamespace),
  };
  return {
    name: fact.name,
    kind: "cuda",
    state: "ready",
    device_id: allocation.deviceId,
    byte_size: fact.byteSize,
    offset: fact.offset,
    allocation_byte_size: allocation.byteSize,
    owner: fact.owner,
    session: session?.id ?? null,
    lease_seconds: fact.leaseSeconds,
    labels: fact.labels,
    exporter: fact.isExporterNamed ? exporter : null,
    pins: 0,
    ...(isRestarted && { verified: fact.isExporterNamed, reason: "adopted" }),
  };
}

async function listAll(http: HttpCaller, caller: Caller, pageSize: number): Promise<readonly Region[]> {
  const regions: Region[] = [];
  let next = "";
  do {
    const query = `page_size=${pageSize}&page_token=${encodeURIComponent(next)}`;
    const page = await http.get<{ regions: Region[]; next_page_token: string }>(
      `/v1/regions?${query}`,
      caller,
    );
    regions.push(...page.regions);
    next = page.next_page_token;
  } while (next !== "");
  return regions;
}

async function assertContents(
  http: HttpCaller,
  { token }: Caller,
  { name, allocation, offset, byteSize, session }: Fact,
  random: SeededRandom,
): Promise<void> {
  const region = `/v1/regions/${encodeURIComponent(name)}`;
  // Who has no token reads what a session owns as its member.
  const reader = token === null ? { token, session } : { token, session: null };
  const pattern = patternOf(allocation, offset, byteSize);
  if (random.percent(50)) {
    const contents = await http.bytes(`${region}/contents`, reader);
    expect(contents.equals(pattern), `contents of ${name}`).toBe(true);
  } else {
    const { crc32c: checksum } = await http.get<{ crc32c: string }>(`${region}/checksum`, reader);
    expect(checksum).toBe(crc32c(pattern).toString(16).padStart(8, "0"));
  }
}

async function assertMappings(
  service: DoomedService,
  http: HttpCaller,
  caller: Caller,
  facts: readonly Fact[],
): Promise<void> {
  const mapped = new Set<Allocation>(facts.map(({ allocation }) => allocation));
  expect(service.openHandles(), "opens less closes").toBe(mapped.size);
  interface Device {
    readonly ordinal: number;
    readonly mapped_bytes: number;
    readonly regions: number;
  }
  const { devices } = await http.get<{ devices: Device[] }>("/v1/devices", caller);
  for (const { ordinal, mapped_bytes, regions } of devices) {
    const bytes = [...mapped].filter(({ deviceId }) => deviceId === ordinal).map(({ byteSize }) => byteSize);
    expect(mapped_bytes).toBe(bytes.reduce((sum, size) => sum + size, 0));
    expect(regions).toBe(facts.filter(({ allocation }) => allocation.deviceId === ordinal).length);
  }
}
