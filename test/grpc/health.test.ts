import { type Client, credentials, loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { protoPath } from "grpc-health-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { addressOf, createCaller, createTestFace, startServer } from "./harness.js";

const service = "inference.GRPCInferenceService";
const services = ["", service, "cudashm.v1.Registry"];

async function start() {
  const face = createTestFace();
  const address = addressOf(await startServer(face, { healthPollMs: 2 }));
  return { face, call: createCaller(address, "grpc.health.v1.Health"), watch: createWatcher(address) };
}

/** Watches with the gRPC project's own description of the service. */
function createWatcher(address: string) {
  const loaded = loadPackageDefinition(loadSync(protoPath, { enums: String, defaults: true }));
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
  const { Health } = (loaded as any).grpc.health.v1;
  const client: Client = new Health(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  return (name: string) => {
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const stream = (client as any).watch({ service: name });
    stream.on("error", () => {});
    const answers = stream[Symbol.asyncIterator]();
    return {
      next: async (): Promise<string> => (await answers.next()).value?.status,
      hasEnded: async (): Promise<boolean> => (await answers.next()).done,
      cancel: () => stream.cancel(),
    };
  };
}

test("the server and its services serve while the face is ready", async () => {
  const { face, call } = await start();
  for (const name of services) {
    expect((await call("Check", { service: name })).response).toEqual({ status: "SERVING" });
  }
  for (const readiness of ["not_ready", "exiting"] as const) {
    face.setReadiness(readiness);
    for (const name of services) {
      expect((await call("Check", { service: name })).response).toEqual({ status: "NOT_SERVING" });
    }
  }
  expect((await call("List")).response).toEqual({
    statuses: Object.fromEntries(services.map((name) => [name, { status: "NOT_SERVING" }])),
  });
});

test("a service that is not here has no health", async () => {
  const { call, watch } = await start();
  for (const name of ["inference", "__proto__"]) {
    expect(await call("Check", { service: name })).toMatchObject({ code: "NOT_FOUND" });
    expect(await watch(name).next()).toBe("SERVICE_UNKNOWN");
  }
});

test("a watcher hears the state now and every change, in order", async () => {
  const { face, watch } = await start();
  const watcher = watch(service);
  expect(await watcher.next()).toBe("SERVING");
  face.setReadiness("not_ready");
  expect(await watcher.next()).toBe("NOT_SERVING");
  face.setReadiness("ready");
  expect(await watcher.next()).toBe("SERVING");
});

test("a watcher hears that the service stops, and its stream ends well", async () => {
  const { face, watch } = await start();
  const watcher = watch("");
  expect(await watcher.next()).toBe("SERVING");
  face.setReadiness("exiting");
  face.shutdown.abort();
  expect(await watcher.next()).toBe("NOT_SERVING");
  expect(await watcher.hasEnded()).toBe(true);
});

test("a watch that comes after the stop ends at once", async () => {
  const { face, watch } = await start();
  face.setReadiness("exiting");
  face.shutdown.abort();
  const watcher = watch("");
  expect(await watcher.next()).toBe("NOT_SERVING");
  expect(await watcher.hasEnded()).toBe(true);
});

test("nothing looks at readiness once the last watcher left", async () => {
  const { face, call, watch } = await start();
  let looks = 0;
  let seen = () => {};
  const readiness = face.context.readiness;
  face.context.readiness = () => {
    looks++;
    seen();
    return readiness();
  };
  const watcher = watch("");
  await watcher.next();
  await new Promise<void>((resolve) => {
    seen = resolve;
  });
  watcher.cancel();
  await vi.waitFor(
    async () => {
      looks = 0;
      for (let i = 0; i < 10; i++) await call("List");
      expect(looks).toBe(10 * services.length);
    },
    { timeout: 10_000, interval: 5 },
  );
});
