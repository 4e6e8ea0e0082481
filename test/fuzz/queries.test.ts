import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { holds, timeout } from "./budget.js";
import { expectSound, FuzzedService, tokens } from "./fuzzed-service.js";
import { requestText } from "./raw-http.js";

const sentinel = "sentinel";
const authorization = `Authorization: Bearer ${tokens.ops}`;

let service: FuzzedService;
beforeAll(async () => {
  service = await FuzzedService.start({ needsToken: true });
});
afterAll(() => service[Symbol.asyncDispose]());
beforeEach(() => service.register(sentinel));
afterEach(() => service.expectUnharmed());

const parameter = fc.oneof(
  fc.constantFrom("wait", "force", "generation", "offset", "byte_size", "from_revision", "region"),
  fc.constantFrom("owner", "device", "state", "label_prefix", "page_size", "page_token"),
  fc.constantFrom("", "__proto__", "constructor", "%77ait", "wiat", "a".repeat(5000), "%", "%ff", "+", "[]"),
);
const value = fc.oneof(
  fc.constantFrom(
    "0",
    "1",
    "64",
    "65",
    "1000",
    "1001",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "1.5",
  ),
  fc.constantFrom(
    "1e2",
    "01",
    "0x1",
    "9".repeat(400),
    "true",
    "false",
    "TRUE",
    "",
    "ready",
    "orphaned",
    "%00",
    "%ff",
  ),
  fc.constantFrom(
    "0s",
    "1ms",
    "5ms",
    "0m",
    "301s",
    "999999999m",
    "9999999999s",
    "1h",
    "5 s",
    "s",
    "%f0%9f%98%80",
  ),
  fc.constantFrom("c2VudGluZWw", "c2VudGluZWw=", "_", "anonymous", "alice", "session:x", "a=b", "é"),
  fc.string({ unit: "binary", maxLength: 5 }).map((text) => encodeURIComponent(text.toWellFormed())),
);
const query = fc
  .array(fc.tuple(parameter, fc.constantFrom("=", "", "=="), value), { maxLength: 4 })
  .map((parameters) => parameters.map((parts) => parts.join("")).join("&"));
const queried = fc.constantFrom(
  ["GET", "/v1/regions"],
  ["GET", "/v1/regions/sentinel"],
  ["GET", "/v1/regions/nobody"],
  ["GET", "/v1/regions/sentinel/contents"],
  ["GET", "/v1/regions/sentinel/checksum"],
  ["PUT", "/v1/regions/sentinel/contents"],
  ["DELETE", "/v1/regions/nobody"],
  ["POST", "/v1/regions/sentinel/renew"],
  ["GET", "/v1/devices"],
  ["GET", "/v1"],
  ["GET", "/v2/cudasharedmemory/status"],
) as fc.Arbitrary<[string, string]>;

test(
  "a query is understood or refused, and nothing is done that it does not say",
  async () => {
    await holds(
      fc.asyncProperty(queried, query, async ([how, path], text) => {
        const isLatin = Buffer.from(text, "latin1").toString("latin1") === text;
        const target = isLatin ? `${path}?${text}` : `${path}?${encodeURI(text)}`;
        const answer = await service.line.ask(requestText(how, target, { headers: [authorization] }));
        const isBinary = path.endsWith("contents") && answer.status === 200;
        if (!isBinary) expectSound(answer);
        expect([200, 400, 404, 431, 504]).toContain(answer.status);
        // What Triton has ignores it.
        if (path.startsWith("/v2") && !answer.body.includes("malformed HTTP"))
          expect(answer.status).toBe(200);
        if (path.endsWith("nobody")) expect(answer.status).not.toBe(200);
        expect(await service.has(sentinel)).toBe(true);
      }),
      300,
    );
  },
  timeout,
);
