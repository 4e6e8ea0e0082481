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

/** Whether a name may be a region's, judged by the bytes that stand for it in a path. */
function nameIn(segment: string): string | null {
  if (/%(?![0-9a-fA-F]{2})/.test(segment)) return null;
  const bytes = Buffer.from(
    segment.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  );
  const name = bytes.toString();
  const isUtf8 = Buffer.from(name).equals(bytes);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: names may have none.
  const isName = !/^\.{1,2}$|[\0-\x1f\x7f-\x9f]/.test(name) && bytes.length <= 1024;
  return isUtf8 && isName ? name : null;
}

const calls: Readonly<Record<string, string>> = { register: "POST", unregister: "POST", status: "GET" };

/** The status that a request without a body has to be answered, in other words than the service's. */
function expectedStatus(method: string, target: string): number {
  const path = (
    target.startsWith("/") ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, "")
  ).replace(/\?.*$/s, "");
  const reading = method === "HEAD" ? "GET" : method;
  const triton = /^\/v2\/(cuda|system)sharedmemory(?:\/region\/([^/]+))?\/(status|register|unregister)$/.exec(
    path,
  );
  if (triton !== null) {
    const [, kind, segment, call = ""] = triton;
    if (reading !== calls[call]) return 405;
    if (kind === "system") return systemStatus(call, segment);
    const name = segment === undefined ? undefined : nameIn(segment);
    if (name === null || call === "register") return 400;
    return call === "unregister" || name === undefined || name === sentinel ? 200 : 404;
  }
  const region = /^\/v1\/regions\/([^/]+)(\/renew|\/contents|\/checksum)?$/.exec(path);
  if (region === null) {
    if (!["/v1", "/v2", "/v1/regions"].includes(path)) return 404;
    return reading === "GET" ? 200 : 405;
  }
  const [, segment = "", part = ""] = region;
  const methods = {
    "": ["GET", "PUT", "DELETE"],
    "/renew": ["POST"],
    "/contents": ["GET", "PUT"],
    "/checksum": ["GET"],
  }[part];
  if (!methods?.includes(reading)) return 405;
  const name = nameIn(segment);
  if (name === null || (part === "" && method === "PUT")) return 400;
  if (name !== sentinel) return 404;
  // It has no lease, and what is to be written has no bytes.
  return part === "/renew" ? 400 : 200;
}

function systemStatus(call: string, segment: string | undefined): number {
  if (call === "register") return 501;
  if (call === "unregister" || segment === undefined) return 200;
  return isEscaped(segment) ? 404 : 400;
}

function isEscaped(segment: string): boolean {
  try {
    decodeURIComponent(segment);
    return true;
  } catch {
    return false;
  }
}

const segment = fc.oneof(
  fc.constantFrom("v2", "v1", "cudasharedmemory", "systemsharedmemory", "region", "regions", sentinel, "r"),
  fc.constantFrom("register", "unregister", "status", "contents", "checksum", "renew", "STATUS"),
  fc.constantFrom(
    "",
    ".",
    "..",
    "%2e",
    "%2e%2E",
    ".%2e",
    "%2F",
    "%252e",
    "..;",
    "*",
    "\\",
    "%5c",
    ";x=1",
    "#x",
  ),
  fc.constantFrom(
    "%",
    "%z",
    "%00",
    "%0d%0aX-A:b",
    "%7f",
    "%c2%85",
    "%ff",
    "%c3%28",
    "%ed%a0%80",
    "%f0%9f%98%80",
  ),
  fc.string({
    unit: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
    maxLength: 6,
  }),
  fc.constantFrom("x".repeat(1024), "%e4%ba%ba".repeat(342), "x".repeat(3000)),
);
const start = fc.constantFrom(
  "",
  "/v2/cudasharedmemory/region/",
  "/v2/cudasharedmemory/",
  "/v1/regions/",
  "/v2/systemsharedmemory/region/",
  "//",
  "http://example.org",
  "HTTP://[::1]:80/v2/cudasharedmemory/region/",
  "x.y://a@b:9?/",
);
const target = fc
  .record({
    start,
    segments: fc.array(segment, { minLength: 1, maxLength: 4 }),
    end: fc.constantFrom("", "/status", "/unregister", "/register", "/", "/contents", "/checksum", "/renew"),
  })
  .map(({ start: first, segments, end }) => `${first === "" ? "/" : first}${segments.join("/")}${end}`)
  .filter((text) => !/[?#]/.test(text) || text.startsWith("x"));
const method = fc.constantFrom("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE");

test(
  "a target is what it is as it was written: nothing is folded, and no other region goes",
  async () => {
    await holds(
      fc.asyncProperty(method, target, async (how, what) => {
        const answer = await service.line.ask(requestText(how, what, { headers: [authorization] }), how);
        expectSound(answer, how);
        const isMalformed = answer.body.includes("malformed HTTP");
        if (!isMalformed) expect(answer.status).toBe(expectedStatus(how, what));
        const mayBeGone =
          answer.status === 200 &&
          ((how === "POST" &&
            /\/unregister$/.test(what.replace(/\?.*/, "")) &&
            what.includes("cudasharedmemory/un")) ||
            what.includes(sentinel));
        if (!mayBeGone) expect(await service.has(sentinel)).toBe(true);
        else if (!(await service.has(sentinel))) await service.register(sentinel);
      }),
      500,
    );
  },
  timeout,
);
