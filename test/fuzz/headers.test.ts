import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { holds, timeout } from "./budget.js";
import { expectSound, FuzzedService, tokens } from "./fuzzed-service.js";
import { mutated } from "./mutations.js";
import { answersIn, exchangeBytes, requestText } from "./raw-http.js";

const sentinel = "sentinel";
const authorization = `Authorization: Bearer ${tokens.ops}`;

let service: FuzzedService;
beforeAll(async () => {
  service = await FuzzedService.start({ needsToken: true });
});
afterAll(() => service[Symbol.asyncDispose]());
beforeEach(() => service.register(sentinel));
afterEach(() => service.expectUnharmed());

const method = fc.constantFrom(
  "GET",
  "POST",
  "PUT",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "TRACE",
  "CONNECT",
  "get",
);
const headerName = fc.oneof(
  fc.constantFrom("cudashm-session", "Authorization", "X-Request-Id", "Last-Event-ID", "Host", "Origin"),
  fc.constantFrom(
    "Content-Length",
    "Transfer-Encoding",
    "Expect",
    "Connection",
    "Upgrade",
    "Content-Type",
    "TE",
  ),
  fc.constantFrom(
    "Access-Control-Request-Method",
    "Access-Control-Request-Headers",
    "traceparent",
    "Cookie",
    "X",
  ),
  fc.constantFrom("", " ", "X Y", "X\0", "X:", "\u00e9", "__proto__", "x".repeat(300), "\tX", "(x)"),
);
const headerValue = fc.oneof(
  fc.constantFrom(
    "",
    "0",
    "5",
    "-1",
    "5, 5",
    "chunked",
    "gzip, chunked",
    "100-continue",
    "close",
    "upgrade",
    "h2c",
  ),
  fc.constantFrom(
    "Bearer alice-alice",
    "Bearer",
    "Bearer  ",
    "bearer ops-ops",
    "Basic YTpi",
    "Bearer x".repeat(900),
  ),
  fc.constantFrom("http://evil.example", "null", "localhost:1", "[::1]", "a/b", "GET", "POST, x"),
  fc.constantFrom("test/1", "/", "x/18446744073709551616", "0".repeat(32), "deadbeef", "x".repeat(20_000)),
  fc.constantFrom(
    "\0",
    "\x7f",
    "\u00ff\u00fe",
    "a\rb",
    "a\nb",
    "a\r\nX-Injected: yes",
    "a\r\n folded",
    "%0d%0aX: y",
  ),
  fc.constantFrom("\r\n\r\nGET /v2 HTTP/1.1\r\n", '"><script>', "\\", '"', "\u00a0"),
  fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 12 }),
);
const headerLines = fc
  .array(fc.tuple(headerName, fc.constantFrom(": ", ":", " : ", ""), headerValue), { maxLength: 5 })
  .map((lines) => lines.map((parts) => parts.join("")));
const protectedTargets = ["/v2/cudasharedmemory/status", "/v1/regions", "/v1/regions/sentinel", "/v2"];

test(
  "headers of any kind get answers that are whole and have nothing of theirs in it, and let nobody in",
  async () => {
    await holds(
      fc.asyncProperty(
        method,
        fc.constantFrom(...protectedTargets),
        headerLines,
        async (how, what, headers) => {
          const head = `${how} ${what} HTTP/1.1\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`;
          const answers = answersIn(await exchangeBytes(service.httpPort, Buffer.from(head, "latin1")), how);
          for (const [index, answer] of answers.entries()) {
            expectSound(answer, index === 0 ? how : "GET");
            expect(JSON.stringify([...answer.headers])).not.toMatch(/injected|script/i);
            if (answer.status === 200)
              expect(head).toMatch(/authorization *: *bearer +(alice-alice|ops-ops)/i);
          }
          expect(await service.has(sentinel)).toBe(true);
        },
      ),
      500,
    );
  },
  timeout,
);

test(
  "a request that was spoiled on its way is answered as what it is then, or refused",
  async () => {
    const whole = [
      requestText("GET", "/v1/regions/sentinel", { headers: [authorization] }),
      requestText("POST", "/v2/cudasharedmemory/region/r/register", { headers: [authorization], body: "{}" }),
      Buffer.from(
        `PUT /v1/regions/r HTTP/1.1\r\n${authorization}\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nT: x\r\n\r\n`,
      ),
    ];
    await holds(
      fc.asyncProperty(fc.constantFrom(...whole), mutated, async (bytes, mutate) => {
        const spoiled = mutate(bytes);
        const how = /^\w+/.exec(spoiled.toString("latin1"))?.[0] ?? "";
        const answers = answersIn(await exchangeBytes(service.httpPort, spoiled), how);
        for (const answer of answers) expectSound(answer, how);
        expect(await service.has(sentinel)).toBe(true);
      }),
      500,
    );
  },
  timeout,
);
