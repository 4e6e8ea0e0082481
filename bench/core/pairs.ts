// Register and unregister in one process, without a transport: `pairs.js registry|native|nothing`.
import { CallAbort, type CallSignal } from "../../dist/core/abort.js";
import { createCudaDriver, IpcMemHandle, RegionRegistry } from "../../dist/index.js";
import { answerQuestions, type Question } from "../processes/answer-questions.js";
import { createStore } from "../servers/store.js";
import { driverOfNothing } from "./driver-of-nothing.js";

export interface PairsQuestion extends Question {
  readonly seconds: number;
  /** In base64; as many pairs are under way at a time, each on its own. */
  readonly handles: readonly string[];
  readonly byteSize: number;
}

interface Pairs {
  /** `signal` is the client's, as every face has one. */
  register(name: string, handle: Buffer, byteSize: bigint, signal: CallSignal): Promise<unknown>;
  unregister(name: string): Promise<unknown>;
}

const pairs = await createPairs(process.argv[2]);
process.on("SIGTERM", () => process.exit());

answerQuestions({
  /** Microseconds a pair. */
  async pairs({ seconds, handles, byteSize }: PairsQuestion): Promise<number> {
    let made = 0;
    const startedAt = performance.now();
    const until = startedAt + seconds * 1000;
    const lane = async (b64: string, index: number) => {
      const [name, handle] = [`pair-${index}`, Buffer.from(b64, "base64")];
      const signal = new CallAbort();
      do {
        await pairs.register(name, handle, BigInt(byteSize), signal);
        await pairs.unregister(name);
        made++;
      } while (performance.now() < until);
    };
    await Promise.all(handles.map(lane));
    return ((performance.now() - startedAt) * 1000) / made;
  },
});

async function createPairs(kind: string | undefined): Promise<Pairs> {
  if (kind === "native") {
    const store = await createStore("native");
    return {
      register: (name, handle) => store.register(name, handle, 0),
      unregister: (name) => store.unregister(name),
    };
  }
  const emulated = () => createCudaDriver({ preference: "emulated", contextLingerMs: 30_000 });
  const registry = new RegionRegistry({ driver: kind === "nothing" ? driverOfNothing : emulated() });
  const context = { owner: "anonymous", protocol: "library", requestId: "bench" } as const;
  return {
    register: (name, bytes, byteSize, signal) =>
      registry.register(
        { name, handle: new IpcMemHandle(bytes), deviceId: 0n, byteSize },
        { ...context, signal },
      ),
    unregister: (name) => registry.unregister(name, context),
  };
}
