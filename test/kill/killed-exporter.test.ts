import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testDriver } from "../helpers/cudashm.js";
import { type Allocation, buildExporter, type ExporterHost, patternOf } from "./exporter-host.js";
import type { Fact } from "./ledger.js";
import { inRounds } from "./rounds.js";
import { anonymous, regionOn, startHost, startRunning } from "./running-service.js";

let folder: string;
let program: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-kill-"));
  program = await buildExporter(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

function start(name: string, graceSeconds: number) {
  return startRunning(join(folder, name), [`--orphan-grace-secs=${graceSeconds}`]);
}

const registered = "registered requested";
const orphaned = "orphaned exporter_exited";
const unregistered = "unregistered requested";
const draining = "draining exporter_exited";
const orphanedAndReaped = [orphaned, "unregistered exporter_exited"];

const ends = ["killed", "exits", "stopped, continued and killed", "killed while stopped"] as const;

async function end(host: ExporterHost, how: (typeof ends)[number]): Promise<void> {
  if (how.includes("stopped")) host.signal("SIGSTOP");
  if (how.includes("continued")) host.signal("SIGCONT");
  if (how === "exits") expect(await host.exit()).toBe(0);
  else await host.kill();
}

describe.skipIf(testDriver !== "emulated")("the end of an exporter", { timeout: 600_000 }, () => {
  test("orphans and unregisters its regions and no others, also while they are being registered", async () => {
    await using running = await start("no grace", 0);
    const { service, watcher, faces } = running;
    let reaped = 0;
    let refused = 0;
    const rounds = await inRounds({ seed: 7, rounds: 60 }, async (random) => {
      const survivor = await startHost(program, random, 2);
      const victim = await startHost(program, random, 1 + random.below(4));
      await using _survivor = survivor.host;
      await using _victim = victim.host;
      const register = async (region: Fact) => ({
        region,
        outcome: await random.pick(faces).register(region, anonymous),
      });
      const kept = await Promise.all(survivor.allocations.map((one) => register(regionOn(one, true))));
      // Of those without a name nobody knows whose they are.
      const regions = Array.from({ length: 1 + random.below(8) }, () =>
        regionOn(random.pick(victim.allocations), random.percent(80)),
      );
      const registering = Promise.all(regions.map(register));
      if (random.percent(50)) await registering;
      for (let turns = random.below(12); turns > 0; turns--) await setImmediate();
      await end(victim.host, random.pick(ends));

      const mapped = new Set<Allocation>(survivor.allocations);
      const histories = new Map(kept.map(({ region }) => [region.name, [registered, unregistered]]));
      for (const { region, outcome } of await registering) {
        if (outcome.kind === "refused") {
          expect(["FAILED_PRECONDITION", "INVALID_ARGUMENT"]).toContain(outcome.code);
          histories.set(region.name, []);
          refused++;
        } else if (region.isExporterNamed) {
          await watcher.untilGone(region.name);
          histories.set(region.name, [registered, ...orphanedAndReaped]);
          reaped++;
        } else {
          expect(outcome.kind).toBe("done");
          await running.expectReadable(region);
          mapped.add(region.allocation);
          histories.set(region.name, [registered, unregistered]);
        }
      }
      expect(service.openHandles()).toBe(mapped.size);
      for (const { region, outcome } of kept) {
        expect(outcome.kind).toBe("done");
        await running.expectReadable(region);
      }
      expect(await random.pick(faces).unregisterAll(anonymous)).toMatchObject({ kind: "done" });
      expect(service.openHandles()).toBe(0);
      for (const [name, history] of histories) {
        if (history.length > 0) await watcher.untilGone(name);
        expect(watcher.of(name)).toEqual(history);
      }
    });
    if (rounds < 50) return;
    expect(reaped).toBeGreaterThan(rounds);
    expect(refused).toBeGreaterThan(0);
  });

  test("leaves its regions for the grace: readable, taken, to be replaced and to be unregistered", async () => {
    await using running = await start("long grace", 3600);
    const { service, watcher, faces } = running;
    await inRounds({ seed: 8, rounds: 8 }, async (random) => {
      const { host, allocations } = await startHost(program, random, 2);
      const heir = await startHost(program, random, 1);
      await using _heir = heir.host;
      const [left, taken] = allocations.map((one) => regionOn(one, true)) as [Fact, Fact];
      for (const region of [left, taken]) {
        expect(await random.pick(faces).register(region, anonymous)).toMatchObject({ kind: "done" });
      }
      await end(host, random.pick(ends));
      for (const region of [left, taken]) {
        await watcher.until(() => watcher.of(region.name).includes(orphaned));
        expect(await running.region(region.name)).toMatchObject({ state: "orphaned" });
        await running.expectReadable(region);
      }

      const face = random.pick(faces);
      const next = { ...regionOn(heir.allocations[0] as Allocation, true), name: taken.name };
      expect(await face.register(next, anonymous)).toMatchObject({ code: "ALREADY_EXISTS" });
      const { generation } = await running.region(taken.name);
      expect(await face.register(next, anonymous, generation)).toMatchObject({ kind: "done" });
      await running.expectReadable(next);
      expect(await running.region(next.name)).toMatchObject({ state: "ready" });
      expect(await random.pick(faces).release(left.name, anonymous)).toMatchObject({ kind: "done" });
      expect(service.openHandles()).toBe(1);
      expect(await random.pick(faces).release(next.name, anonymous)).toMatchObject({ kind: "done" });
      expect(service.openHandles()).toBe(0);
      await watcher.untilGone(left.name);
      expect(watcher.of(left.name)).toEqual([registered, orphaned, unregistered]);
    });
  });

  test("unregisters its regions when the grace is over, and no sooner", async () => {
    await using running = await start("grace", 1);
    const { service, watcher, faces } = running;
    await inRounds({ seed: 9, rounds: 1 }, async (random) => {
      const victims = await Promise.all(Array.from({ length: 10 }, () => startHost(program, random, 1)));
      const regions = victims.flatMap(({ allocations }) => allocations.map((one) => regionOn(one, true)));
      for (const region of regions) await random.pick(faces).register(region, anonymous);
      await Promise.all(victims.map(({ host }) => end(host, random.pick(ends))));
      for (const { name } of regions) {
        await watcher.untilGone(name);
        expect(watcher.of(name)).toEqual([registered, ...orphanedAndReaped]);
        const at = async (change: string) =>
          Number((await service.logged((line) => line.region === name && line.change === change)).time);
        // The clock that the log tells may be set, and that of the timers may be a millisecond ahead.
        expect((await at("unregistered")) - (await at("orphaned"))).toBeGreaterThan(900);
      }
      expect(service.openHandles()).toBe(0);
    });
  });

  test("is not that it is stopped: its regions stay ready, and others can be registered", async () => {
    await using running = await start("stopped", 0);
    const { watcher, faces, service } = running;
    await inRounds({ seed: 10, rounds: 10 }, async (random) => {
      const stopped = await startHost(program, random, 2);
      const killed = await startHost(program, random, 1);
      await using _stopped = stopped.host;
      const [before, during] = stopped.allocations.map((one) => regionOn(one, true)) as [Fact, Fact];
      const marker = regionOn(killed.allocations[0] as Allocation, true);
      const register = async (region: Fact) =>
        expect(await random.pick(faces).register(region, anonymous)).toMatchObject({ kind: "done" });
      await register(before);
      await register(marker);
      stopped.host.signal("SIGSTOP");
      await register(during);
      await running.expectReadable(during);
      // Whoever watches processes has looked at both by the time that it tells of this one.
      await killed.host.kill();
      await watcher.untilGone(marker.name);
      if (random.percent(50)) stopped.host.signal("SIGCONT");
      for (const region of [before, during]) {
        expect(await running.region(region.name)).toMatchObject({ state: "ready" });
        await running.expectReadable(region);
      }
      await stopped.host.kill();
      for (const { name } of [before, during]) {
        await watcher.untilGone(name);
        expect(watcher.of(name)).toEqual([registered, ...orphanedAndReaped]);
      }
      expect(service.openHandles()).toBe(0);
    });
  });

  test("leaves memory to whoever uses it at that moment: it is given back when he lets go", async () => {
    await using running = await start("in use", 0);
    const { service, watcher, faces, httpAddress } = running;
    await inRounds({ seed: 17, rounds: 4 }, async (random) => {
      const { host, allocations } = await startHost(program, random, 1, 16 * 1024 * 1024);
      const region = regionOn(allocations[0] as Allocation, true);
      expect(await random.pick(faces).register(region, anonymous)).toMatchObject({ kind: "done" });
      // More than the sockets hold, so that it is not read to its end while nobody takes it.
      const call = request(
        `http://${httpAddress}/v1/regions/${encodeURIComponent(region.name)}/contents`,
      ).end();
      const [contents] = (await once(call, "response")) as [IncomingMessage];
      await end(host, random.pick(ends));
      await watcher.until(() => watcher.of(region.name).includes(draining));
      expect(watcher.of(region.name)).toEqual([registered, orphaned, draining]);
      expect(service.openHandles()).toBe(1);
      const chunks: Buffer[] = [];
      for await (const chunk of contents) chunks.push(chunk as Buffer);
      expect(Buffer.concat(chunks).equals(patternOf(region.allocation, 0, region.byteSize))).toBe(true);
      await watcher.untilGone(region.name);
      expect(service.openHandles()).toBe(0);
    });
  });

  test("cannot be hidden behind another process: an exporter that is not as claimed is refused", async () => {
    await using running = await start("claims", 0);
    const { service, faces } = running;
    await inRounds({ seed: 11, rounds: 1 }, async (random) => {
      const { host, allocations } = await startHost(program, random, 1);
      const other = await startHost(program, random, 0);
      await using _host = host;
      await using _other = other.host;
      const { identity } = host;
      const claims = [
        { claim: { startTime: identity.startTime + 1n }, text: "exporter.start_time is" },
        { claim: { startTime: identity.startTime - 1n }, text: "exporter.start_time is" },
        { claim: { pid: 2 ** 22 }, text: "there is no such process" },
        { claim: { bootId: "00000000-0000-0000-0000-000000000000" }, text: "exporter.boot_id is" },
        { claim: { pidNamespace: identity.pidNamespace + 1n }, text: "exporter.pid_namespace is" },
        { claim: { pid: service.pid }, text: "exporter.start_time is" },
      ];
      for (const { claim, text } of claims) {
        for (const face of faces) {
          const region = regionOn(allocations[0] as Allocation, true);
          const outcome = await face.register(region, anonymous, null, { ...identity, ...claim });
          expect(outcome).toMatchObject({ code: "FAILED_PRECONDITION" });
          expect(outcome.kind === "refused" && outcome.text).toContain(text);
        }
      }
      expect(service.openHandles()).toBe(0);
    });
  });
});
