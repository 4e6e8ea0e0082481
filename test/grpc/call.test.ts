import { once } from "node:events";
import { connect } from "node:http2";
import { credentials, status } from "@grpc/grpc-js";
import { expect, onTestFinished, test, vi } from "vitest";
import { exitingText, internalErrorText } from "../../src/core/errors.js";
import type { CallContext } from "../../src/core/region.js";
import {
  CudaSharedMemoryRegisterRequest,
  GRPCInferenceServiceClient,
} from "../../src/grpc/gen/inference/grpc_service.js";
import { addressOf, createCaller, createTestFace, startServer, type TestFace } from "./harness.js";

/** Holds every open of the face's driver until the test lets go. */
function holdOpens(face: TestFace): { readonly begun: Promise<void>; release(): void } {
  let release = () => {};
  const begun = new Promise<void>((tellBegun) => {
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    face.driver.beforeOpen = () => {
      tellBegun();
      return held;
    };
  });
  return { begun, release: () => release() };
}

/** The reason with which the context of the next register is aborted. */
function abortReason(face: TestFace): Promise<unknown> {
  return new Promise((resolve) => {
    const register = face.registry.register.bind(face.registry);
    face.registry.register = (request, context: CallContext) => {
      const signal = context.signal as AbortSignal;
      signal.addEventListener("abort", () => resolve(signal.reason));
      return register(request, context);
    };
  });
}

/** `message` as it travels: a flag for "not compressed" and its length before it. */
function grpcFrame(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

const waitOptions = { timeout: 10_000, interval: 5 };

function settled(face: TestFace): Promise<void> {
  return vi.waitFor(() => {
    expect(face.driver).toMatchObject({ opens: 1, closes: 1 });
    expect(face.registry.mappings).toBe(0);
  }, waitOptions);
}

test("a client that leaves during an open has its register undone", async () => {
  const face = createTestFace();
  const opening = holdOpens(face);
  const reason = abortReason(face);
  const address = addressOf(await startServer(face));
  const client = new GRPCInferenceServiceClient(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const request: CudaSharedMemoryRegisterRequest = {
    name: "r",
    rawHandle: face.goodRegister.raw_handle,
    deviceId: 0n,
    byteSize: 64n,
  };
  const call = client.cudaSharedMemoryRegister(request, () => {});
  await opening.begun;
  call.cancel();
  expect(await reason).toMatchObject({ code: "CANCELLED" });
  opening.release();
  await settled(face);
  expect(face.registry.statuses()).toEqual([]);
  expect(face.faults).toEqual([]);
});

test("a client whose connection breaks during an open has its register undone", async () => {
  const face = createTestFace();
  const opening = holdOpens(face);
  const reason = abortReason(face);
  const server = await startServer(face);
  const call = createCaller(addressOf(server))("CudaSharedMemoryRegister", face.goodRegister);
  await opening.begun;
  const closed = server.close(AbortSignal.abort());
  expect(await reason).toMatchObject({ code: "CANCELLED" });
  opening.release();
  await closed;
  await settled(face);
  expect((await call).code).not.toBe("OK");
});

test("a deadline that passes during an open has its register undone, and is told apart", async () => {
  const face = createTestFace();
  const opening = holdOpens(face);
  const reason = abortReason(face);
  // Not a gRPC client: that would cancel the call by its own clock, before or after the server's.
  const session = connect(`http://${addressOf(await startServer(face))}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/CudaSharedMemoryRegister",
    "content-type": "application/grpc",
    "grpc-timeout": "200m",
  });
  const { name, raw_handle: rawHandle } = face.goodRegister;
  const message = CudaSharedMemoryRegisterRequest.encode({ name, rawHandle, deviceId: 0n, byteSize: 64n });
  stream.end(grpcFrame(message.finish()));
  const [headers] = await once(stream, "response");
  expect(headers).toMatchObject({ "grpc-status": String(status.DEADLINE_EXCEEDED) });
  expect(await reason).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  opening.release();
  await settled(face);
});

test("the service's stop ends a register that waits for the driver", async () => {
  const face = createTestFace();
  const opening = holdOpens(face);
  const call = createCaller(addressOf(await startServer(face)));
  const answer = call("CudaSharedMemoryRegister", face.goodRegister);
  await opening.begun;
  face.shutdown.abort();
  expect(await answer).toMatchObject({ code: "UNAVAILABLE", text: exitingText });
  expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toMatchObject({ code: "UNAVAILABLE" });
  expect(await call("CudaSharedMemoryStatus")).toMatchObject({ code: "OK" });
  opening.release();
  await settled(face);
});

test("an answered call is aborted by nothing that comes later", async () => {
  const face = createTestFace();
  const aborted = vi.fn();
  const register = face.registry.register.bind(face.registry);
  face.registry.register = (request, context) => {
    context.signal?.addEventListener("abort", aborted);
    return register(request, context);
  };
  const call = createCaller(addressOf(await startServer(face)));
  expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toMatchObject({ code: "OK" });
  await call("ServerLive");
  face.shutdown.abort();
  expect(aborted).not.toHaveBeenCalled();
});

test.each([
  ["rejects", () => Promise.reject(new Error("the disk is full at /var/secret"))],
  [
    "throws",
    () => {
      throw new TypeError("undefined is not a function");
    },
  ],
])(
  "a registry that %s with an unknown error is our fault: a fixed text out, the cause in the log",
  async (_how, register) => {
    const face = createTestFace();
    face.registry.register = register;
    const call = createCaller(addressOf(await startServer(face)));
    const { code, text, trailers } = await call("CudaSharedMemoryRegister", face.goodRegister);
    expect({ code, text }).toEqual({ code: "INTERNAL", text: internalErrorText });
    expect(face.faults).toEqual([
      { requestId: trailers.get("x-request-id")[0], protocol: "grpc", error: expect.any(Error) },
    ]);
  },
);

test("a close that the driver refuses is told with its cause and reported", async () => {
  const face = createTestFace();
  const call = createCaller(addressOf(await startServer(face)));
  await call("CudaSharedMemoryRegister", face.goodRegister);
  face.driver.beforeClose = () => Promise.reject(new Error("no"));
  const answer = await call("CudaSharedMemoryUnregister", { name: "r" });
  expect(answer).toMatchObject({
    code: "INTERNAL",
    text: expect.stringMatching(/^failed to close CUDA IPC handle: /),
  });
  expect(face.faults).toHaveLength(1);
  expect(await call("CudaSharedMemoryUnregister")).toMatchObject({
    code: "INTERNAL",
    text: "Failed to unregister the following cuda shared memory regions: r ,",
  });
  face.driver.beforeClose = undefined;
  expect(await call("CudaSharedMemoryUnregister")).toMatchObject({ code: "OK" });
});

test("a slow open delays no other call", async () => {
  const face = createTestFace();
  const opening = holdOpens(face);
  const call = createCaller(addressOf(await startServer(face)));
  const slow = call("CudaSharedMemoryRegister", { ...face.goodRegister, name: "slow" });
  await opening.begun;
  expect((await call("CudaSharedMemoryStatus")).response).toEqual({ regions: {} });
  expect(await call("CudaSharedMemoryStatus", { name: "slow" })).toMatchObject({ code: "NOT_FOUND" });
  expect(await call("CudaSharedMemoryUnregister", { name: "other" })).toMatchObject({ code: "OK" });
  expect(await call("CudaSharedMemoryRegister", { ...face.goodRegister, name: "slow" })).toMatchObject({
    code: "ALREADY_EXISTS",
  });
  opening.release();
  expect(await slow).toMatchObject({ code: "OK" });
});
