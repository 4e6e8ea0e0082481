import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate, setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { testDriver } from "../helpers/cudashm.js";
import { keepSecret } from "../helpers/secrets.js";
import type { LogLine } from "./doomed-service.js";
import { type Allocation, buildExporter, type ExporterHost } from "./exporter-host.js";
import type { Fact } from "./ledger.js";
import type { Caller, Outcome } from "./outcome.js";
import { inRounds } from "./rounds.js";
import { anonymous, regionOn, startHost, startRunning } from "./running-service.js";
import { SeededRandom } from "./seeded-random.js";
import { type HeldSession, holdSession } from "./session-client.js";
import { openTcpProxy } from "./tcp-proxy.js";

const registered = "registered requested";
const ended = "unregistered session_ended";
const unregistered = "unregistered requested";
const holdingProcess = fileURLToPath(new URL("../fixtures/holding-process.mjs", import.meta.url));

type Running = Awaited<ReturnType<typeof startRunning>>;

let folder: string;
let host: ExporterHost;
let allocations: readonly Allocation[];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cudashm-kill-"));
  const program = await buildExporter(folder);
  ({ host, allocations } = await startHost(program, new SeededRandom(1), 16));
});
afterAll(async () => {
  await host.kill();
  rmSync(folder, { recursive: true });
});

interface Member {
  readonly region: Fact;
  readonly caller: Caller;
  readonly outcome: Outcome;
}

async function register(
  { faces }: Running,
  random: SeededRandom,
  session: { readonly secret: string } | null,
): Promise<Member> {
  const region = regionOn(random.pick(allocations), random.percent(50));
  const caller = { token: null, session };
  const face = random.pick(faces);
  const outcome = random.percent(30)
    ? await face.registerAsTriton(region, caller)
    : await face.register(region, caller);
  return { region, caller, outcome };
}

/** So many regions in a session. */
async function registerSome(running: Running, random: SeededRandom, session: HeldSession, count: number) {
  const members: Member[] = [];
  while (members.length < count) {
    const member = await register(running, random, session);
    expect(member.outcome.kind).toBe("done");
    members.push(member);
  }
  return members;
}

async function expectEnded({ watcher }: Running, members: readonly Member[]): Promise<void> {
  for (const { region, outcome } of members) {
    if (outcome.kind === "done") await watcher.untilGone(region.name);
    expect(watcher.of(region.name)).toEqual(outcome.kind === "done" ? [registered, ended] : []);
  }
}

/** As many mappings as there are allocations with regions. */
function expectMapped({ service }: Running, members: readonly Member[]): void {
  expect(service.openHandles()).toBe(new Set(members.map(({ region }) => region.allocation)).size);
}

describe.skipIf(testDriver !== "emulated")("a session", { timeout: 600_000 }, () => {
  test("ends with the process that holds it, and takes its regions along and no others", async () => {
    await using running = await startRunning(join(folder, "killed"), []);
    const { grpcAddress, faces, watcher } = running;
    const other = await holdSession(grpcAddress, null, { graceSeconds: 0 });
    let refused = 0;
    const rounds = await inRounds({ seed: 12, rounds: 40 }, async (random) => {
      const args = [holdingProcess, grpcAddress, String(1 + random.below(3))];
      await using client = new LineProcess(process.execPath, args);
      const { sessions } = JSON.parse(await client.nextLine()) as { sessions: { secret: string }[] };
      for (const { secret } of sessions) keepSecret("a session's secret", Buffer.from(secret, "latin1"));
      const kept = [await register(running, random, null), await register(running, random, other.session)];
      const registering = Promise.all(
        Array.from({ length: random.below(8) }, () => register(running, random, random.pick(sessions))),
      );
      if (random.percent(40)) await registering;
      for (let turns = random.below(10); turns > 0; turns--) await setImmediate();
      await client.kill("SIGKILL");

      const members = await registering;
      for (const { region, outcome } of members) {
        if (outcome.kind === "done") continue;
        expect(outcome).toMatchObject({ kind: "refused", code: "UNAUTHENTICATED" });
        // That was answered at once, and is undone once the driver is done: whoever unregisters waits for it.
        expect(await random.pick(faces).unregisterAsTriton(region.name, anonymous)).toMatchObject({
          kind: "done",
        });
        refused++;
      }
      await expectEnded(running, members);
      expectMapped(running, kept);
      for (const { region, caller, outcome } of kept) {
        expect(outcome.kind).toBe("done");
        await running.expectReadable(region, caller);
        expect(await random.pick(faces).release(region.name, caller)).toMatchObject({ kind: "done" });
        await watcher.untilGone(region.name);
        expect(watcher.of(region.name)).toEqual([registered, unregistered]);
      }
      expectMapped(running, []);
    });
    other.cancel();
    if (rounds >= 40) expect(refused).toBeGreaterThan(0);
  });

  test("whose connection is cut ends, or waits for another stream as long as its grace", async () => {
    await using running = await startRunning(join(folder, "cut"), []);
    const { grpcAddress, faces, watcher } = running;
    const tally = { ended: 0, resumed: 0, tooLate: 0 };
    const rounds = await inRounds({ seed: 13, rounds: 60 }, async (random) => {
      const graceSeconds = random.pick([0, 0.05, 3600]);
      await using proxy = await openTcpProxy(grpcAddress);
      const first = await holdSession(proxy.address, null, { graceSeconds });
      const { session } = first;
      const members = await registerSome(running, random, session, 1 + random.below(4));
      // Frozen, the service does not know that it is gone: whoever resumes it takes it over.
      const isFrozen = graceSeconds > 0 && random.percent(30);
      if (isFrozen) proxy.freeze();
      else proxy.cut();
      if (graceSeconds === 0.05) await setTimeout(random.below(100));
      const second = await holdSession(grpcAddress, null, { resume: session }).catch(
        (error: { code: number }) => error,
      );
      if ("code" in second) {
        expect(second.code).toBe(status.UNAUTHENTICATED);
        expect(graceSeconds).toBeLessThan(3600);
        expect(isFrozen).toBe(false);
        await expectEnded(running, members);
        tally[graceSeconds === 0 ? "ended" : "tooLate"]++;
      } else {
        // Before the service has heard of the cut, the session is simply taken over.
        expect(second.session).toEqual(session);
        for (const { region, caller } of members) {
          expect(watcher.of(region.name)).toEqual([registered]);
          await running.expectReadable(region, caller);
        }
        expect(
          await random.pick(faces).release(members[0]?.region.name ?? "", members[0]?.caller ?? anonymous),
        ).toMatchObject({ kind: "done" });
        second.cancel();
        tally.resumed++;
        if (graceSeconds < 3600) await expectEnded(running, members.slice(1));
        else expect(await random.pick(faces).unregisterAll(anonymous)).toMatchObject({ kind: "done" });
      }
      expectMapped(running, []);
    });
    if (rounds >= 60) for (const count of Object.values(tally)) expect(count).toBeGreaterThan(0);
  });

  test("whose peer has fallen silent ends when keepalive finds out, or can be resumed from then on", async () => {
    const args = ["--grpc-keepalive-time=300", "--grpc-keepalive-timeout=1000"];
    await using running = await startRunning(join(folder, "silent"), args);
    const { grpcAddress, watcher, faces } = running;
    await inRounds({ seed: 14, rounds: 1 }, async (random) => {
      await using proxy = await openTcpProxy(grpcAddress);
      const sessions: { readonly session: HeldSession; readonly members: readonly Member[] }[] = [];
      for (const graceSeconds of [0, 0, 0, 0.1, 0.1, 3600]) {
        const { session } = await holdSession(proxy.address, null, { graceSeconds });
        sessions.push({ session, members: await registerSome(running, random, session, 2) });
      }
      proxy.freeze();
      const last = sessions.pop();
      for (const { members } of sessions) await expectEnded(running, members);
      const resumed = await holdSession(grpcAddress, null, { resume: last?.session as HeldSession });
      for (const { region, caller } of last?.members ?? []) {
        expect(watcher.of(region.name)).toEqual([registered]);
        await running.expectReadable(region, caller);
      }
      expectMapped(running, last?.members ?? []);
      resumed.cancel();
      expect(await random.pick(faces).unregisterAll(anonymous)).toMatchObject({ kind: "done" });
      expectMapped(running, []);
    });
  });

  test("outlives a service that is killed by its grace: resumed it goes on, else it ends", async () => {
    const stateFile = join(folder, "restarted");
    const args = ["--adopt-unverified=true"];
    await inRounds({ seed: 15, rounds: 2 }, async (random) => {
      const hold = async (running: Running, graceSeconds: number) => {
        const { session } = await holdSession(running.grpcAddress, null, { graceSeconds });
        return { session, members: await registerSome(running, random, session, 2) };
      };
      const killed = await startRunning(stateFile, args);
      const [atOnce, late, inTime] = [await hold(killed, 0), await hold(killed, 1), await hold(killed, 3600)];
      await killed[Symbol.asyncDispose]();

      await using running = await startRunning(stateFile, args);
      const { grpcAddress, watcher, faces, service } = running;
      const resume = (session: HeldSession) => holdSession(grpcAddress, null, { resume: session });
      await expect(resume(atOnce.session)).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
      const second = await resume(inTime.session);
      expect(second.session).toEqual(inTime.session);
      for (const { region } of late.members) {
        // It may be over before anyone can watch.
        const gone = (line: LogLine) => line.region === region.name && line.change === "unregistered";
        expect(await service.logged(gone)).toMatchObject({ reason: "session_ended" });
      }
      await expect(resume(late.session)).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
      expectMapped(running, inTime.members);
      for (const { region, caller } of inTime.members) {
        await running.expectReadable(region, caller);
        expect(await random.pick(faces).release(region.name, caller)).toMatchObject({ kind: "done" });
        await watcher.untilGone(region.name);
        expect(watcher.of(region.name)).toEqual([unregistered]);
      }
      expectMapped(running, []);
    });
  });
});
