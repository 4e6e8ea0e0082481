import { setImmediate, setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import { audit, type ServerState } from "./audit.js";
import { DoomedService, ServiceDied } from "./doomed-service.js";
import type { ExporterHost } from "./exporter-host.js";
import { GrpcCaller } from "./grpc-caller.js";
import { HttpCaller } from "./http-caller.js";
import { endsInStart, type KillPlan, planKill } from "./kill-plan.js";
import { Lane, type LaneCaller } from "./lane.js";
import { type Fact, Ledger } from "./ledger.js";
import type { Caller } from "./outcome.js";
import { SeededRandom } from "./seeded-random.js";
import { type HeldSession, type HoldStream, holdSession } from "./session-client.js";
import { assertRefusalsTold, certainLosses, perhapsRestarted, restarted } from "./survival.js";
import { tokenOf, type World } from "./world.js";

/** What the rounds of a test came to. */
export interface Tally {
  kills: number;
  stops: number;
  audits: number;
  answers: number;
  /** Calls that were under way when the service died. */
  lost: number;
  adopted: number;
  refused: number;
  resumed: number;
}

export interface ServiceRoundsOptions {
  readonly world: World;
  /** Names of tokens; without any, everyone is anonymous. */
  readonly tokens: readonly string[];
}

const maxResumable = 3;

/** Where a service is to kill itself and does not, it is killed after so many. */
const answersAtMost = 2500;

/** One service after the other on the same state file, each under load until it is killed. */
export class ServiceRounds implements AsyncDisposable {
  readonly tally: Tally = {
    kills: 0,
    stops: 0,
    audits: 0,
    answers: 0,
    lost: 0,
    adopted: 0,
    refused: 0,
    resumed: 0,
  };
  readonly #world: World;
  readonly #tokens: readonly string[];
  readonly #ledger = new Ledger();
  readonly #fixedArgs: readonly string[];
  #spare = new DoomedService();
  #resumable: readonly HeldSession[] = [];
  #diedInRun = new Set<ExporterHost>();
  #epoch = 0;
  #instances = new Set<string>();

  constructor({ world, tokens }: ServiceRoundsOptions) {
    this.#world = world;
    this.#tokens = tokens;
    this.#fixedArgs =
      tokens.length === 0
        ? ["--orphan-grace-secs=0"]
        : [
            "--orphan-grace-secs=0",
            "--unregister-all=own",
            `--token-file=${world.tokenFile([...tokens, "ops"])}`,
          ];
  }

  /** Starts a service on what the one before left, compares, and kills it under load, all as the numbers have it. */
  async round(random: SeededRandom, plan = planKill(random)): Promise<void> {
    const adoptsUnverified = random.percent(75);
    await using service = this.#spare;
    this.#spare = new DoomedService();
    const args = [...this.#fixedArgs, `--adopt-unverified=${adoptsUnverified}`];
    service.start({
      stateFile: this.#world.stateFile,
      args,
      // So that there is more under way when it dies.
      ...(random.percent(20) && { variables: { CUDASHM_EMULATED_DELAYS: "cuIpcOpenMemHandle_v2=4" } }),
      death: plan.kind === "file" ? plan.death : undefined,
    });
    const killing = endsInStart(plan) ? this.#killInStart(service, plan) : null;
    if (killing !== null) {
      await killing;
      this.#ledger.apply(perhapsRestarted(adoptsUnverified));
    } else {
      await this.#run(service, plan, random, adoptsUnverified);
    }
    const { code, signal } = await service.end;
    if (signal === "SIGKILL") this.tally.kills++;
    else {
      expect(code).toBe(0);
      expect(service.openHandles()).toBe(0);
      this.tally.stops++;
    }
    if (random.percent(8)) {
      await this.#world.killHost(random);
      await this.#world.addHost();
    }
  }

  /** One more service, which is not killed: compares for the last time. */
  async end(random: SeededRandom): Promise<void> {
    await using service = this.#spare;
    this.#spare = new DoomedService();
    service.start({
      stateFile: this.#world.stateFile,
      args: [...this.#fixedArgs, "--adopt-unverified=true"],
    });
    await service.ready();
    using http = new HttpCaller(await service.address("HTTPService"));
    await this.#auditStart(service, http, random, true);
    expect(await service.kill("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(service.openHandles()).toBe(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#spare[Symbol.asyncDispose]();
  }

  async #killInStart(service: DoomedService, plan: KillPlan): Promise<void> {
    if (plan.kind === "start") await setTimeout(plan.afterMs);
    else {
      // Where there is nothing to take up, or the file is not touched so often, it becomes ready.
      const event = plan.kind === "adoption" ? "taken up" : "were taken up";
      await service.logged(event).catch(expectDied);
      await turns(plan.kind === "adoption" ? plan.turns : 0);
    }
    await service.kill();
  }

  async #run(
    service: DoomedService,
    plan: KillPlan,
    random: SeededRandom,
    adoptsUnverified: boolean,
  ): Promise<void> {
    const isEarly = random.percent(15);
    const mayBe = perhapsRestarted(adoptsUnverified);
    try {
      await (isEarly ? service.address("GRPCInferenceService") : service.ready());
    } catch (error) {
      expectDied(error);
      // It wrote down what it could not take up, and had to die at that.
      expect(plan.kind).toBe("file");
      this.#ledger.apply(mayBe);
      return;
    }
    using http = new HttpCaller(await service.address("HTTPService"));
    using grpc = new GrpcCaller(await service.address("GRPCInferenceService"));
    const holds: HoldStream[] = [];
    if (isEarly) {
      this.#ledger.apply(mayBe);
      if (plan.kind === "load") await this.#lookAtReadiness(http);
    } else {
      const facts = await this.#auditStart(service, http, random, adoptsUnverified);
      holds.push(...(await this.#resumeAll(service, facts)));
    }
    while (random.percent(40)) holds.push(await this.#openSession(service, random));
    // The lighter client where there are many calls to make.
    const faces = isLong(plan) ? [http] : [http, grpc];
    const load = { service, faces, holds, random, isEarly };
    if (!isEarly && plan.kind === "load" && random.percent(25)) {
      await this.#loadAndStay(load, plan.answers);
      await audit({ service, http, ledger: this.#ledger, random, caller: this.#auditor, isRestarted: false });
      this.tally.audits++;
    }
    await this.#load(load, plan);
    for (const hold of holds) await hold.ended;
  }

  get #auditor(): Caller {
    return { token: this.#tokens.length === 0 ? null : tokenOf("ops"), session: null };
  }

  /** Resolves with what is there. */
  async #auditStart(
    service: DoomedService,
    http: HttpCaller,
    random: SeededRandom,
    adoptsUnverified: boolean,
  ): Promise<readonly Fact[]> {
    expect(await http.status("/v2/health/ready")).toBe(200);
    const caller = this.#auditor;
    const state = await http.get<ServerState>("/v1", caller);
    expect(state.epoch).toBeGreaterThan(this.#epoch);
    expect(this.#instances.has(state.instance_id)).toBe(false);
    this.#epoch = state.epoch;
    this.#instances.add(state.instance_id);

    const ledger = this.#ledger;
    const before = new Map(ledger.names.map((name) => [name, ledger.may(name)]));
    const losses = certainLosses(ledger, adoptsUnverified, this.#diedInRun);
    ledger.apply(restarted(adoptsUnverified));
    const facts = await audit({ service, http, ledger, random, caller, isRestarted: true });
    assertRefusalsTold(state, losses, before, adoptsUnverified);
    expect(state.adoption.adopted).toBe(facts.length);
    this.#diedInRun = new Set();
    this.tally.audits++;
    this.tally.adopted += facts.length;
    this.tally.refused += state.adoption.refused.length;
    return facts;
  }

  /** Ready is only who knows of every region of the run before what became of it. */
  async #lookAtReadiness(http: HttpCaller): Promise<void> {
    if ((await http.status("/v2/health/ready")) !== 200) return;
    const { adoption } = await http.get<ServerState>("/v1", this.#auditor);
    expect(adoption.pending).toBe(0);
  }

  /** Goes on with the sessions that outlived the service before; those with nothing in them are forgotten with it. */
  async #resumeAll(service: DoomedService, facts: readonly Fact[]): Promise<readonly HoldStream[]> {
    const address = await service.address("GRPCInferenceService");
    this.#resumable = this.#resumable.filter(({ id }) => facts.some(({ session }) => session?.id === id));
    const holds = await Promise.all(
      this.#resumable.map((session) => holdSession(address, session.token, { resume: session })),
    );
    expect(holds.map(({ session }) => session)).toEqual(this.#resumable);
    this.tally.resumed += holds.length;
    return holds;
  }

  async #openSession(service: DoomedService, random: SeededRandom): Promise<HoldStream> {
    const name = this.#tokens.length === 0 ? null : random.pick(this.#tokens);
    const graceSeconds = this.#resumable.length < maxResumable && random.percent(70) ? 3600 : 0;
    const address = await service.address("GRPCInferenceService");
    const hold = await holdSession(address, name && tokenOf(name), { graceSeconds });
    if (graceSeconds > 0) this.#resumable = [...this.#resumable, hold.session];
    return hold;
  }

  /** So many calls, all of them answered. */
  async #loadAndStay(load: LoadOptions, answers: number): Promise<void> {
    let left = answers;
    await Promise.all(
      this.#lanes(load, false).map(async (lane) => {
        while (left-- > 0) expect(await lane.step()).toBe(true);
      }),
    );
    this.tally.answers += answers;
  }

  /** Calls until the service is dead. */
  async #load(load: LoadOptions, plan: KillPlan): Promise<void> {
    const { service, random } = load;
    let answers = 0;
    let ending: Promise<unknown> | undefined;
    const enough = plan.kind === "load" ? plan.answers : answersAtMost;
    const hostDiesAt = random.percent(6) ? Math.floor(enough / 2) : -1;
    await Promise.all(
      this.#lanes(load, isLong(plan)).map(async (lane) => {
        while (await lane.step()) {
          if (answers++ === hostDiesAt) {
            this.#diedInRun.add(await this.#world.killHost(random));
            await this.#world.addHost();
          }
          if (answers >= enough) ending ??= end(service, plan);
        }
        this.tally.lost++;
      }),
    );
    await (ending ?? service.end);
    this.tally.answers += answers;
  }

  #lanes({ service, faces, holds, random, isEarly }: LoadOptions, areMany: boolean): readonly Lane[] {
    return Array.from({ length: areMany ? 12 : 1 + random.below(12) }, (_, index) => {
      const caller = this.#caller(random, holds);
      const prefix = `${caller.session?.id ?? caller.owner}/${index}`;
      return new Lane({
        random: new SeededRandom(random.below(2 ** 32)),
        ledger: this.#ledger,
        faces,
        caller,
        ownNames: Array.from({ length: 5 }, (_, number) => `${prefix}/${number}`),
        sharedNames: ["shared 0", "shared 1"],
        allocations: this.#world.allocations,
        unregistersOwn: this.#tokens.length > 0,
        isDoomed: () => service.isDoomed,
        nextByteSize: this.#world.nextByteSize,
        isEarly,
      });
    });
  }

  #caller(random: SeededRandom, holds: readonly HoldStream[]): LaneCaller {
    if (holds.length > 0 && random.percent(50)) {
      const { session } = random.pick(holds);
      const principal = this.#tokens.find((name) => tokenOf(name) === session.token);
      return { token: session.token, session, owner: principal ?? `session:${session.id}` };
    }
    if (this.#tokens.length === 0) return { token: null, session: null, owner: "anonymous" };
    const owner = random.pick(this.#tokens);
    return { token: tokenOf(owner), session: null, owner };
  }
}

interface LoadOptions {
  readonly service: DoomedService;
  readonly faces: readonly (HttpCaller | GrpcCaller)[];
  readonly holds: readonly HoldStream[];
  readonly random: SeededRandom;
  readonly isEarly: boolean;
}

/** Whether the load has to go on until the file has grown long. */
function isLong(plan: KillPlan): boolean {
  return plan.kind === "file" && plan.death.isRewrite;
}

/** Sends what the plan has; resolves when the service has ended. */
async function end(service: DoomedService, plan: KillPlan): Promise<void> {
  const { signals, turns: count } = plan.kind === "load" ? plan : { signals: ["SIGKILL"] as const, turns: 0 };
  for (const signal of signals) {
    await turns(count);
    void service.kill(signal);
  }
  await service.end;
}

function expectDied(error: unknown): void {
  if (!(error instanceof ServiceDied)) throw error;
}

/** So many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate();
}
