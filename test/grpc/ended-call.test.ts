import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { frame, grpcMessage, settingsFrame } from "../../bench/load/http2-frames.js";
import { HoldRequest, ReadContentsRequest, WatchRequest } from "../../src/grpc/gen/cudashm/v1/registry.js";
import { CudaSharedMemoryRegisterRequest } from "../../src/grpc/gen/inference/grpc_service.js";
import { callHeaders, flags, framesIn, headerBlock, preface, types } from "../fuzz/http2-bytes.js";
import { context, request } from "../helpers/registry-harness.js";
import { createTestFace, portOf, startServer, type TestFace } from "./harness.js";

const none = Buffer.alloc(0);
const { endHeaders, endStream } = flags;
const live = "/inference.GRPCInferenceService/ServerLive";

const calls: Readonly<Record<string, (face: TestFace) => readonly [path: string, message: Uint8Array]>> = {
  Watch: () => ["/cudashm.v1.Registry/Watch", WatchRequest.encode({ name: "", fromRevision: 1n }).finish()],
  Hold: () => [
    "/cudashm.v1.Registry/Hold",
    HoldRequest.encode({ resume: "", resumeGrace: { seconds: 30n, nanos: 0 } }).finish(),
  ],
  ReadContents: () => [
    "/cudashm.v1.Registry/ReadContents",
    ReadContentsRequest.encode({ name: "kept", offset: 0n }).finish(),
  ],
  CudaSharedMemoryRegister: ({ goodRegister }) => [
    "/inference.GRPCInferenceService/CudaSharedMemoryRegister",
    CudaSharedMemoryRegisterRequest.encode({
      name: "late",
      rawHandle: goodRegister.raw_handle,
      deviceId: 0n,
      byteSize: 64n,
    }).finish(),
  ],
};

/** What makes the library answer a call before the peer has sent all of it: headers, and what follows the message. */
const ends: Readonly<Record<string, readonly [headers: readonly [string, string][], more: Buffer]>> = {
  "its deadline passed": [[["grpc-timeout", "10m"]], none],
  "its next message was refused": [[], Buffer.from([0, 0x7f, 0xff, 0xff, 0xff])],
};

/** A client made by hand, and what waits until the service has answered on a stream. */
async function connectByHand(port: number) {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let came: Buffer = none;
  let look = () => {};
  socket.on("data", (bytes) => {
    came = Buffer.concat([came, bytes]);
    look();
  });
  await once(socket, "connect");
  socket.write(Buffer.concat([preface, settingsFrame([])]));
  const answered = async (stream: number) => {
    while (!framesIn(came).some((one) => one.type === types.headers && one.stream === stream)) {
      await new Promise<void>((resolve) => {
        look = resolve;
      });
    }
  };
  return { socket, answered };
}

const cases = Object.keys(ends).flatMap((end) => Object.keys(calls).map((call) => [call, end] as const));

test.each(cases)("%s is not begun once %s, whatever comes of it then", async (call, end) => {
  let atWork = 0;
  const outcomes: string[] = [];
  const face = createTestFace({
    observeOperation: () => ({
      begin: () => ++atWork,
      end: (_, outcome) => {
        atWork--;
        outcomes.push(outcome);
      },
    }),
  });
  const { handle } = face.driver.allocate(4096);
  await face.registry.register(request("kept", handle), context);
  const server = await startServer(face, { allowContents: true });
  const { socket, answered } = await connectByHand(portOf(server));
  const [path, message] = (calls[call] as (typeof calls)[string])(face);
  const [headers, more] = ends[end] as (typeof ends)[string];

  const head = frame(types.headers, endHeaders, 1, headerBlock(callHeaders(path, headers)));
  socket.write(Buffer.concat([head, frame(types.data, 0, 1, Buffer.concat([grpcMessage(message), more]))]));
  await answered(1);
  socket.write(frame(types.data, endStream, 1, none));
  // Another call behind it, so that the service has seen the end of the first.
  socket.write(
    Buffer.concat([
      frame(types.headers, endHeaders, 3, headerBlock(callHeaders(live))),
      frame(types.data, endStream, 3, grpcMessage(none)),
    ]),
  );
  await answered(3);
  socket.destroy();

  await expect.poll(() => atWork).toBe(0);
  // What the library refuses before the call is whole never comes to a handler.
  expect(outcomes).toEqual(end.includes("deadline") ? ["DEADLINE_EXCEEDED", "OK"] : ["OK"]);
  expect(face.registry.statuses().map(({ name, pins }) => [name, pins])).toEqual([["kept", 0]]);
  expect(face.registry.mappings).toBe(1);
});
