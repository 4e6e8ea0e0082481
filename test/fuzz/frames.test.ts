import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { frame, grpcMessage, settingsFrame, windowUpdateFrame } from "../../bench/load/http2-frames.js";
import { holds, timeout } from "./budget.js";
import { FuzzedService, shortKeepalive } from "./fuzzed-service.js";
import {
  callHeaders,
  connectionBytes,
  flags,
  framesIn,
  headerBlock,
  preface,
  sendAndLeave,
  types,
} from "./http2-bytes.js";
import { mutated } from "./mutations.js";
import { methodOf, RawGrpc } from "./raw-grpc.js";

const live = methodOf("inference.GRPCInferenceService", "ServerLive");
const statusPath = "/inference.GRPCInferenceService/CudaSharedMemoryStatus";

let service: FuzzedService;
let grpc: RawGrpc;
beforeAll(async () => {
  service = await FuzzedService.start({ args: shortKeepalive });
});
afterAll(() => service[Symbol.asyncDispose]());
beforeEach(() => {
  grpc = new RawGrpc(service.grpcAddress);
});
afterEach(async () => {
  grpc[Symbol.dispose]();
  await service.expectUnharmed();
});

/** Sends bytes, makes sure that others are served as well as before, and that what came back is HTTP/2. */
async function send(...parts: readonly Uint8Array[]): Promise<void> {
  const came = await sendAndLeave(service.grpcPort, Buffer.concat(parts), async () => {
    expect(await grpc.call(live, [], { timeoutMs: 20_000 })).toMatchObject({ code: "OK" });
  });
  // What is no HTTP/2 at all may be told so in HTTP/1.
  if (came.toString("latin1").startsWith("HTTP/1.1 ")) return;
  for (const { type, stream } of framesIn(came)) expect([type <= 9, stream < 2 ** 31]).toEqual([true, true]);
}

test(
  "a connection of frames in no order, with no sense or of no length is one nobody else hears of",
  async () => {
    await holds(
      fc.asyncProperty(connectionBytes, (bytes) => send(bytes)),
      200,
    );
  },
  timeout,
);

const opening = Buffer.concat([preface, settingsFrame([])]);
const { endHeaders, endStream } = flags;
const headers = (stream: number, set: number, block: Uint8Array) => frame(types.headers, set, stream, block);
const call = headerBlock(callHeaders(statusPath));
const data = (stream: number, set: number, bytes: Uint8Array) => frame(types.data, set, stream, bytes);
const times = (count: number, make: (index: number) => Uint8Array) =>
  Buffer.concat(Array.from({ length: count }, (_, index) => make(index)));
const none = Buffer.alloc(0);

test(
  "a connection whose frames were spoiled on their way is one nobody else hears of",
  async () => {
    const whole = Buffer.concat([
      opening,
      headers(1, endHeaders, call),
      data(1, endStream, grpcMessage(none)),
      windowUpdateFrame(0, 1000),
      headers(
        3,
        endHeaders,
        headerBlock(callHeaders("/cudashm.v1.Registry/Watch", [["grpc-timeout", "50m"]])),
      ),
      data(3, endStream, grpcMessage(none)),
      frame(types.ping, 0, 0, Buffer.alloc(8)),
    ]);
    await holds(
      fc.asyncProperty(mutated, (mutate) => send(mutate(whole))),
      150,
    );
  },
  timeout,
);

test(
  "what a client sends where metadata belongs is written nowhere, a secret least of all",
  async () => {
    for (const header of [
      ["authorization", "Bearer secret\u00ff"],
      ["cudashm-session", "secret\u00e9"],
      ["secret^", "x"],
    ] as const) {
      const block = headerBlock(callHeaders(statusPath, [header]));
      await send(opening, headers(1, endHeaders, block), data(1, endStream, grpcMessage(none)));
    }
  },
  timeout,
);

/** Far more of something than a client has a use for. */
const floods: readonly (readonly [what: string, make: () => Uint8Array])[] = [
  [
    "header blocks without an end",
    () =>
      Buffer.concat([
        headers(1, 0, call),
        times(600, () => frame(types.continuation, 0, 1, Buffer.alloc(16_000, 0))),
      ]),
  ],
  [
    "a header block of thousands of empty continuations",
    () => Buffer.concat([headers(1, 0, call), times(20_000, () => frame(types.continuation, 0, 1, none))]),
  ],
  [
    "headers of a megabyte",
    () =>
      Buffer.concat([
        headers(1, 0, call),
        times(70, () => frame(types.continuation, 0, 1, headerBlock([["x", "y".repeat(16_000)]]))),
        frame(types.continuation, endHeaders, 1, none),
      ]),
  ],
  [
    "streams that are reset as soon as they are opened",
    () =>
      times(4000, (index) =>
        Buffer.concat([
          headers(1 + 2 * index, endHeaders, call),
          frame(types.resetStream, 0, 1 + 2 * index, Buffer.from([0, 0, 0, 8])),
        ]),
      ),
  ],
  [
    "streams that are opened and left",
    () => times(4000, (index) => headers(1 + 2 * index, endHeaders, call)),
  ],
  [
    "calls in one go",
    () =>
      times(2000, (index) =>
        Buffer.concat([
          headers(1 + 2 * index, endHeaders, call),
          data(1 + 2 * index, endStream, grpcMessage(none)),
        ]),
      ),
  ],
  ["settings", () => times(20_000, () => settingsFrame([[4, 65_535]]))],
  [
    "settings of thousands of entries",
    () => settingsFrame(Array.from({ length: 2700 }, (_, id) => [id % 100, id])),
  ],
  ["pings", () => times(20_000, () => frame(types.ping, 0, 0, Buffer.alloc(8)))],
  [
    "priorities",
    () => times(20_000, (index) => frame(types.priority, 0, 1 + 2 * index, Buffer.from([0, 0, 0, 0, 1]))),
  ],
  [
    "data frames with nothing in them",
    () => Buffer.concat([headers(1, endHeaders, call), times(20_000, () => data(1, 0, none))]),
  ],
  [
    "data that no window allows",
    () => Buffer.concat([headers(1, endHeaders, call), times(40, () => data(1, 0, Buffer.alloc(16_384)))]),
  ],
  [
    "windows made larger than they can be",
    () => Buffer.concat([headers(1, endHeaders, call), times(3, () => windowUpdateFrame(1, 2 ** 31 - 1))]),
  ],
  [
    "messages longer than any may be",
    () =>
      Buffer.concat([
        headers(1, endHeaders, call),
        data(1, 0, Buffer.from([0, 0xff, 0xff, 0xff, 0xff])),
        data(1, endStream, Buffer.alloc(16_000)),
      ]),
  ],
];

test.each(floods)(
  "a flood of %s harms nobody else, and is not kept",
  (_what, make) => send(opening, make()),
  timeout,
);
