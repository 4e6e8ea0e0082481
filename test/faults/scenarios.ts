import type { Outcome } from "../contract/face-client.js";
import { FaceRefusal, type RegistryFaceClient } from "../contract/registry-face-client.js";
import type { Memory } from "../contract/registry-fixture.js";
import type { FaultyService } from "./faulty-service.js";

/** What a scenario has to work with. */
export interface Scene {
  readonly client: RegistryFaceClient;
  readonly service: FaultyService;
  readonly memory: Memory;
  /** A second allocation. */
  readonly other: Memory;
}

/** Something that a client does. It begins and ends with nothing registered. */
export interface Scenario {
  readonly title: string;
  readonly contextLingerMs?: number;
  readonly variables?: Readonly<Record<string, string>>;
  /** Functions of which a refusal may reach nobody, since nobody waits for what they are called for. */
  readonly unheard?: readonly string[];
  /** Rejects with the first refusal. */
  run(scene: Scene): Promise<void>;
}

const bytes = Buffer.from("what is written and read again");
const window = { byte_size: BigInt(bytes.length) };

export const scenarios: readonly Scenario[] = [
  {
    title: "a register and an unregister",
    run: registerAndUnregister,
  },
  {
    title: "the same with a context that lingers",
    contextLingerMs: 3,
    async run(scene) {
      const releases = scene.service.releases();
      await registerAndUnregister(scene);
      await scene.service.untilReleases(releases + 1);
    },
  },
  {
    title: "Triton's register, status and unregister of all",
    async run({ client: { triton }, memory }) {
      const { raw_handle: handle, byte_size: byteSize } = memory.part();
      accepted(await triton.register({ name: "a", handle, byteSize }));
      accepted(await triton.status("a"));
      accepted(await triton.unregister());
    },
  },
  {
    title: "two names on one handle",
    async run({ client, memory }) {
      await client.register("a", memory.part());
      await client.register("b", memory.part(64n, 64n));
      await client.unregister("a");
      await client.readContents("b", window);
      await client.unregister("b");
    },
  },
  {
    title: "a replacement on the same handle",
    async run({ client, memory }) {
      const { generation } = await client.register("a", memory.part());
      await client.register("a", { ...memory.part(32n), replace_generation: generation });
      await client.unregister("a");
    },
  },
  {
    title: "a replacement by another handle",
    async run({ client, memory, other }) {
      const { generation } = await client.register("a", memory.part());
      await client.register("a", { ...other.part(), replace_generation: generation });
      await client.unregister("a");
    },
  },
  {
    title: "a dry run",
    async run({ client, memory }) {
      await client.register("a", { ...memory.part(), dry_run: true });
    },
  },
  {
    title: "a window that does not fit",
    async run({ client, memory }) {
      const tooMuch = client.register("a", memory.part(memory.byteSize + 1n));
      await tooMuch.then(notExpected, (error) => throwUnless(error, /exceeds the \d+ bytes/));
    },
  },
  {
    title: "a register of a stale handle",
    // One of the results is what it ends with anyway.
    unheard: ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuIpcOpenMemHandle_v2"],
    async run({ client, memory }) {
      const raw_handle = Buffer.from(memory.part().raw_handle);
      raw_handle[raw_handle.length - 1] = (raw_handle.at(-1) ?? 0) ^ 1;
      const stale = client.register("a", { ...memory.part(), raw_handle });
      await stale.then(notExpected, (error) => throwUnless(error, /invalid args: CUDA_ERROR_\w+ \(1\): /));
    },
  },
  {
    title: "contents written, read and summed",
    async run({ client, memory }) {
      await client.register("a", memory.part());
      await client.writeContents("a", bytes, window);
      await client.readContents("a", window);
      await client.checksum("a", window);
      await client.unregister("a");
    },
  },
  {
    title: "an unregister while a write pins the region",
    unheard: ["cuCtxPushCurrent_v2", "cuIpcCloseMemHandle"],
    async run({ client, service, memory }) {
      await client.register("a", memory.part(BigInt(bytes.length)));
      const upload = client.beginWrite("a");
      await service.untilPinned("a");
      accepted(await client.triton.unregister("a"));
      await upload.finish(bytes);
      await service.untilSettled("a");
    },
  },
  {
    title: "an unregister by force while contents are read",
    variables: { CUDASHM_EMULATED_DELAYS: "cuMemcpyDtoH_v2=3" },
    async run({ client, memory }) {
      await client.register("a", memory.part());
      const reading = client
        .readContents("a", window)
        .then(noop, (error) => throwUnless(error, /was unregistered by force|is being unregistered/));
      const closing = client.unregister("a", { force: true, wait_ms: 60_000 });
      for (const outcome of await Promise.allSettled([closing, reading])) {
        if (outcome.status === "rejected") throw outcome.reason;
      }
    },
  },
  {
    title: "the devices and their free memory",
    unheard: ["cuCtxPushCurrent_v2"],
    async run({ client, memory }) {
      await client.devices();
      await client.register("a", memory.part());
      await client.devices();
      await client.unregister("a");
    },
  },
  {
    title: "an adoption",
    async run({ client, service, memory }) {
      await service.adopt("a", memory);
      await client.get("a");
      await client.unregister("a");
    },
  },
];

/** Runs it; null, or what the client was refused with. */
export async function refusalIn(scenario: Scenario, scene: Scene): Promise<FaceRefusal | null> {
  try {
    await scenario.run(scene);
    return null;
  } catch (error) {
    if (error instanceof FaceRefusal) return error;
    throw error;
  }
}

async function registerAndUnregister({ client, memory }: Scene): Promise<void> {
  await client.register("a", memory.part());
  await client.unregister("a");
}

function accepted({ code, text }: Outcome): void {
  if (code !== "OK") throw new FaceRefusal(code, text);
}

function throwUnless(error: unknown, expected: RegExp): void {
  if (!(error instanceof Error && expected.test(error.message))) throw error;
}

function notExpected(): never {
  throw new Error("it was to be refused");
}

function noop(): void {}
