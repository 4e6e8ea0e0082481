import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { holds, timeout } from "./budget.js";
import { expectSound, FuzzedService, regionTarget } from "./fuzzed-service.js";
import { mutated } from "./mutations.js";
import { type RawAnswer, requestText } from "./raw-http.js";

let service: FuzzedService;
let b64: string;
beforeAll(async () => {
  service = await FuzzedService.start();
  b64 = service.allocations[0]?.handle.toString("base64") ?? "";
});
afterAll(() => service[Symbol.asyncDispose]());
afterEach(() => service.expectUnharmed());

const name = "r";
const send = (method: string, target: string, body: Uint8Array | string) =>
  service.line.ask(requestText(method, target, { body }));

/** Neither the handle nor a part of it that is long enough to be known by. */
function expectNoHandle({ body }: RawAnswer): void {
  for (let at = 0; at + 15 <= b64.length; at += 5) expect(body).not.toContain(b64.slice(at, at + 15));
}

async function expectRefused(answer: RawAnswer): Promise<void> {
  expect(answer.status).toBe(400);
  expect(await service.has(name)).toBe(false);
}

/** A member as it is written, and whether a register of Triton's can be made of it. */
interface Member {
  readonly key: string;
  readonly text: string;
  readonly isGood: boolean;
}
const members = (key: string, isGood: boolean, ...texts: string[]) =>
  fc.constantFrom(...texts).map((text): Member => ({ key, text, isGood }));
// What stands for the handle, which is not known yet.
const theHandle = "@";

const rawHandle = fc.oneof(
  { weight: 4, arbitrary: members("raw_handle", true, '{"b64":"@"}', '{ "x" : [1e5] , "b64" : "@\\n" }') },
  {
    weight: 1,
    arbitrary: members(
      "raw_handle",
      false,
      ...[
        "null",
        '"@"',
        "[]",
        '["@"]',
        "{}",
        '{"b64":null}',
        '{"b64":1}',
        '{"B64":"@"}',
        '{"b64":"@","b64":"x"}',
      ],
      ...[
        '{"b64":""}',
        '{"b64":"@@"}',
        `{"b64":"${"A".repeat(86)}"}`,
        `{"b64":"Q1VEQVNITS1FTVVMQVRFR${"A".repeat(65)}"}`,
      ],
    ),
  },
);
const byteSize = fc.oneof(
  { weight: 4, arbitrary: members("byte_size", true, "64", "1", "4096", "4095") },
  {
    weight: 1,
    arbitrary: members(
      "byte_size",
      false,
      ...[
        "0",
        "-0",
        "4097",
        "18446744073709551615",
        "18446744073709551616",
        "9".repeat(5000),
        "-1",
        "64.0",
        "6.4e1",
      ],
      ...['"64"', "null", "true", "[64]", "064", "+64", "0x40", "NaN", "Infinity", "64n", "", "6 4"],
    ),
  },
);
const deviceId = fc.oneof(
  { weight: 4, arbitrary: members("device_id", true, "0", "-0", " 0 ") },
  {
    weight: 1,
    arbitrary: members(
      "device_id",
      false,
      ...["99", "4294967296", "-1", "0.0", "0e0", '"0"', "null", "false", "18446744073709551616", "{}", "00"],
    ),
  },
);
const other = fc
  .tuple(
    fc.constantFrom("x", "", "__proto__", "constructor", "Raw_handle", "\\u0000", "raw_handl\\u0065 "),
    fc.oneof(fc.json(), fc.constant(`${"[".repeat(500)}${"]".repeat(500)}`)),
  )
  .map(([key, text]): Member => ({ key, text, isGood: true }));

const document = fc
  .tuple(rawHandle, byteSize, deviceId)
  .chain((needed) =>
    fc.record({
      order: fc.shuffledSubarray(needed, { minLength: 3 }),
      missing: fc.option(fc.nat(2), { freq: 12 }),
      more: fc.uniqueArray(other, { maxLength: 2, selector: ({ key }) => key }),
      blank: fc.constantFrom("", " ", "\r\n\t"),
      bom: fc.boolean(),
    }),
  )
  .map(({ order, missing, more, blank, bom }) => {
    const all = [...order.filter((_, index) => index !== missing), ...more];
    const written = all.map(({ key, text }) => `${blank}"${key}"${blank}:${blank}${text}`).join(",");
    return {
      text: `${bom ? "\ufeff" : ""}${blank}{${written}}${blank}`,
      isGood: missing === null && all.every(({ isGood }) => isGood),
    };
  });

test(
  "a body of Triton's register is taken if it says one, and refused in Triton's way if not",
  async () => {
    await holds(
      fc.asyncProperty(document, async ({ text, isGood }) => {
        const answer = await send("POST", regionTarget(name, "register"), text.replaceAll(theHandle, b64));
        expectSound(answer);
        expectNoHandle(answer);
        if (!isGood) return expectRefused(answer);
        expect(answer).toMatchObject({ status: 200, body: "" });
        await service.unregister(name);
      }),
      400,
    );
  },
  timeout,
);

const registration = () =>
  JSON.stringify({
    raw_handle: { b64 },
    device_id: 0,
    byte_size: 64,
    offset: 0,
    lease_seconds: 1.5,
    labels: { team: "a", "x/y": "" },
    exporter: { pid: 1, start_time: 1, boot_id: "b", pid_namespace: 1 },
    dry_run: true,
  });
const targets: readonly (readonly [method: string, target: string])[] = [
  ["POST", regionTarget(name, "register")],
  ["PUT", `/v1/regions/${name}`],
  ["POST", "/v1/regions/first/renew"],
];

test(
  "a body that was spoiled is taken for what it says then, or refused",
  async () => {
    await service.register("first");
    // Then it may end by itself.
    let hasLease = false;
    const documents = [
      registration(),
      registration().replace(/"exporter":\{[^}]*\},/, ""),
      '{"lease_seconds":1}',
    ];
    await holds(
      fc.asyncProperty(
        fc.constantFrom(...targets),
        fc.constantFrom(...documents),
        mutated,
        async (where, text, mutate) => {
          const answer = await send(...where, mutate(Buffer.from(text)));
          expectSound(answer);
          expectNoHandle(answer);
          expect([200, 400]).toContain(answer.status);
          if (await service.has(name)) await service.unregister(name);
          hasLease ||= where[1].endsWith("/renew") && answer.status === 200;
          if (await service.has("first")) return;
          expect(hasLease).toBe(true);
          await service.register("first");
        },
      ),
      400,
    );
  },
  timeout,
);

test(
  "a body that is anything at all is refused",
  async () => {
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .tuple(
          fc.constantFrom("[", '{"a":', "{", '"', "1", "-", "\\", '{"raw_handle":{"b64":'),
          fc.integer({ min: 1, max: 60_000 }),
        )
        .map(([text, times]) => Buffer.from(text.repeat(times))),
    );
    await holds(
      fc.asyncProperty(fc.constantFrom(...targets.slice(0, 2)), anything, async (where, bytes) => {
        const answer = await send(...where, bytes);
        expectSound(answer);
        await expectRefused(answer);
      }),
      200,
    );
  },
  timeout,
);
