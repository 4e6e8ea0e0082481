import { expect, test } from "vitest";
import { context, createHarness, expectRejection, request } from "../helpers/registry-harness.js";

function register(labels: ReadonlyMap<string, string>) {
  const { driver, registry } = createHarness();
  return registry.register(request("r", driver.allocate(64).handle, { labels }), context);
}

const many = (count: number) => new Map(Array.from({ length: count }, (_, index) => [`k${index}`, ""]));

test.each([
  ["none", new Map()],
  ["32", many(32)],
  ["every character a key can have", new Map([["aZ09._/-", "value"]])],
  [
    "a key of 63 characters and a value of 255 bytes",
    new Map([["k".repeat(63), `${"\u00e9".repeat(127)}x`]]),
  ],
  ["any text", new Map([["k", "\u{1f600} = % \\ \" '"]])],
])("a region can have these labels: %s", async (_, labels) => {
  expect((await register(labels)).labels).toEqual(labels);
});

const key = "a label's key has 1 to 63 letters, digits, dots, dashes, underscores and slashes";
const value = "the value of label k must be at most 255 bytes of text without control characters";

test.each([
  ["33", many(33), "33 labels are too many, at most 32 are allowed"],
  ["an empty key", new Map([["", "v"]]), key],
  ["a key of 64 characters", new Map([["k".repeat(64), "v"]]), key],
  ["a key with an equals sign", new Map([["a=b", "v"]]), key],
  ["a key with an accent", new Map([["\u00e9", "v"]]), key],
  ["a key with a line end", new Map([["k\n", "v"]]), key],
  ["a value of 256 bytes", new Map([["k", "\u00e9".repeat(128)]]), value],
  ["a value with a line end", new Map([["k", "a\nb"]]), value],
  ["a value with half a character", new Map([["k", "\ud800"]]), value],
])("a region cannot have these labels: %s", async (_, labels, problem) => {
  await expectRejection(
    register(labels),
    "INVALID_ARGUMENT",
    `failed to register shared memory region 'r': invalid args: ${problem}`,
  );
});

test("a region keeps the labels it was registered with, whatever becomes of the caller's", async () => {
  const { driver, registry } = createHarness();
  const labels = new Map([["a", "1"]]);
  await registry.register(request("r", driver.allocate(64).handle, { labels }), context);
  labels.set("b", "2");
  expect([...registry.status("r").labels]).toEqual([["a", "1"]]);
});
