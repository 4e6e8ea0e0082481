import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { frame, grpcMessage, settingsFrame } from "../../bench/load/http2-frames.js";
import { HoldResponse } from "../../src/grpc/gen/cudashm/v1/registry.js";
import { callHeaders, flags, headerBlock, preface, types } from "../fuzz/http2-bytes.js";
import { keepSecret } from "../helpers/secrets.js";
import { addressOf, createTestFace, portOf, startServer } from "./harness.js";
import { createRegistryClient } from "./registry-client.js";

const none = Buffer.alloc(0);
const { endHeaders, endStream } = flags;

/** What Node 20's HTTP/2 answers with GOAWAY. Then it reads no more, so that it does not see the client leave either. */
const violations: Readonly<Record<string, Buffer>> = {
  ping: frame(types.ping, 0, 0, Buffer.alloc(7)),
  data: frame(types.data, 0, 3, grpcMessage(none)),
};

/** A client made by hand that holds a session. */
async function holdByHand(port: number) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  // Reset instead of closed, if there was more to read for the service.
  socket.on("error", () => {});
  const closed = once(socket, "close");
  let came: Buffer = none;
  let look = () => {};
  socket.on("data", (bytes) => {
    came = Buffer.concat([came, bytes]);
    look();
  });
  /** The payload of the first frame of this type. */
  const payload = async (type: number) => {
    for (;;) {
      for (let at = 0; at + 9 <= came.length; at += 9 + came.readUIntBE(at, 3)) {
        const end = at + 9 + came.readUIntBE(at, 3);
        if (came[at + 3] === type && end <= came.length) return came.subarray(at + 9, end);
      }
      await new Promise<void>((resolve) => {
        look = resolve;
      });
    }
  };
  socket.write(
    Buffer.concat([
      preface,
      settingsFrame([]),
      frame(types.headers, endHeaders, 1, headerBlock(callHeaders("/cudashm.v1.Registry/Hold"))),
      frame(types.data, endStream, 1, grpcMessage(none)),
    ]),
  );
  const { sessionId, secret } = HoldResponse.decode((await payload(types.data)).subarray(5));
  keepSecret("a session's secret", Buffer.from(secret));
  return { socket, closed, payload, sessionId, secret };
}

test("connections that Node leaves open are closed by keepalive, and their sessions end", async () => {
  const face = createTestFace();
  const server = await startServer(face, { keepaliveTimeMs: 1000, keepaliveTimeoutMs: 1000 });
  const client = createRegistryClient(addressOf(server));
  const held = await Promise.all(
    Object.entries(violations).map(async ([name, violation]) => {
      const session = await holdByHand(portOf(server));
      const headers = { "cudashm-session": session.secret };
      const registered = await client.call("Register", { ...face.goodRegister, name }, headers);
      expect(registered).toMatchObject({ code: "OK" });
      session.socket.end(violation);
      return session;
    }),
  );
  for (const { payload, closed, sessionId } of held) {
    await payload(types.goAway);
    await closed;
    await expect.poll(() => face.registry.sessions.isOpen(sessionId)).toBe(false);
  }
  await expect.poll(() => face.registry.statuses()).toEqual([]);
  expect(face.driver).toMatchObject({ opens: 1, closes: 1 });
  expect(face.faults).toEqual([]);
});
