import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { holds, timeout } from "./budget.js";
import { expectSound, FuzzedService, tokens } from "./fuzzed-service.js";
import { answersIn, requestText } from "./raw-http.js";

const sentinel = "sentinel";
const authorization = `Authorization: Bearer ${tokens.ops}`;

let service: FuzzedService;
beforeAll(async () => {
  service = await FuzzedService.start({ needsToken: true });
});
afterAll(() => service[Symbol.asyncDispose]());
beforeEach(() => service.register(sentinel));
afterEach(() => service.expectUnharmed());

const eventQuery = fc.constantFrom(
  "",
  "?from_revision=0",
  "?from_revision=1",
  "?from_revision=18446744073709551615",
  "?from_revision=-1",
  "?region=r",
  "?region=nobody",
  "?region=%00",
  "?region=%ff",
  "?from_revision=1&from_revision=1",
  "?x=y",
);
const lastEventId = fc.oneof(
  fc.constant(undefined),
  fc.constantFrom(
    "",
    "/",
    "/1",
    "x/1",
    "x/y",
    "x/18446744073709551616",
    "a/b/2",
    "\u00e9/1",
    "x/ 1",
    "1".repeat(9000),
  ),
);

test(
  "a watch that begins gets a hello and then every change, in their order; another is refused in JSON",
  async () => {
    await holds(
      fc.asyncProperty(eventQuery, lastEventId, async (text, id) => {
        const headers = [authorization, ...(id === undefined ? [] : [`Last-Event-ID: ${id}`])];
        const socket = connect(service.httpPort, "127.0.0.1");
        let came = "";
        let wake = () => {};
        socket.setEncoding("latin1").on("data", (piece: string) => {
          came += piece;
          wake();
        });
        const until = async (pattern: RegExp) => {
          while (!pattern.test(came)) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        };
        socket.write(requestText("GET", `/v1/events${text}`, { headers }));
        await until(/\r\n\r\n[\s\S]*(\n\n|\})/);
        if (!came.startsWith("HTTP/1.1 200 OK\r\n")) {
          const [answer] = answersIn(Buffer.from(came, "latin1"), "GET");
          if (answer !== undefined) expectSound(answer);
          expect(answer?.status).toBeOneOf([400, 431]);
        } else {
          expect(came).toMatch(/\r\n\r\n[0-9a-f]+\r\nid: [0-9a-f-]+\/\d+\nevent: hello\ndata: \{/);
          await service.register("r");
          await service.unregister("r");
          if (!text.includes("nobody")) await until(/"kind":"unregistered"[\s\S]*"name":"r"/);
          const revisions = [...came.matchAll(/event: change\ndata: \{[^\n]*"revision":(\d+)/g)];
          const numbers = revisions.map(([, digits]) => Number(digits));
          expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
        }
        socket.destroy();
      }),
      60,
    );
  },
  timeout,
);
