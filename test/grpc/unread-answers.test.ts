import { once } from "node:events";
import { connect } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import { CudaSharedMemoryStatusRequest } from "../../src/grpc/gen/inference/grpc_service.js";
import { UnreadAnswers } from "../../src/grpc/unread-answers.js";
import { context, request } from "../helpers/registry-harness.js";
import { addressOf, createTestFace, startServer } from "./harness.js";
import { callRaw } from "./raw-stream.js";

const path = "/inference.GRPCInferenceService/CudaSharedMemoryStatus";
const all = CudaSharedMemoryStatusRequest.encode({ name: "" }).finish();

test("answers are counted until they were taken, and one that is too many is refused", () => {
  const unread = new UnreadAnswers(100);
  const taken = unread.add("a", new Uint8Array(60));
  unread.add("a", new Uint8Array(40));
  expect(() => unread.add("a", new Uint8Array(1))).toThrow(
    expect.objectContaining({
      code: "RESOURCE_EXHAUSTED",
      message: "answers of 100 bytes wait for this client to read them; call again once it has",
    }),
  );
  unread.add("b", new Uint8Array(100));
  taken();
  unread.add("a", new Uint8Array(60));
});

test("one answer alone may be of any size", () => {
  new UnreadAnswers(100).add("a", new Uint8Array(101));
});

test("what a client leaves unread has an end, which no other client hears of", async () => {
  const face = createTestFace();
  const { handle } = face.driver.allocate(4096);
  // Long names, so that few answers are much.
  const names = Array.from({ length: 8000 }, (_, index) => String(index).padStart(255, "n"));
  await Promise.all(names.map((name) => face.registry.register(request(name, handle), context)));
  const server = await startServer(face);
  const open = async (initialWindowSize: number) => {
    const session = connect(`http://${addressOf(server)}`, { settings: { initialWindowSize } });
    onTestFinished(() => session.destroy());
    session.on("error", () => {});
    await once(session, "connect");
    return session;
  };
  const reader = await open(2 ** 30);
  const whole = callRaw(reader, path, all);
  expect(await whole.status).toMatchObject({ code: "OK" });
  // Five bytes before each message say how long it is.
  const kept = Math.floor(2 ** 26 / (whole.received() - 5));

  const session = await open(0);
  let refused = 0;
  for (let calls = 0; calls < kept + 20; calls++) {
    void callRaw(session, path, all).status.then(({ code }) => code === "RESOURCE_EXHAUSTED" && refused++);
  }
  await expect.poll(() => refused).toBe(20);
  // Each that is read makes room for the next.
  for (let calls = 0; calls < kept + 20; calls++) {
    expect(await callRaw(reader, path, all).status).toMatchObject({ code: "OK" });
  }
});
