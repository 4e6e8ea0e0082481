import { expect, test } from "vitest";
import { createRequestIds } from "../../src/core/request-ids.js";

test("no two ids of a source are equal, and two sources share none", () => {
  const [first, second] = [createRequestIds(), createRequestIds()];
  const ids = new Set<string>();
  for (let i = 0; i < 10_000; i++) ids.add(first()).add(second());
  expect(ids.size).toBe(20_000);
});

test("an id is safe in a header and in a log line", () => {
  const next = createRequestIds();
  for (let i = 0; i < 100; i++) expect(next()).toMatch(/^[\w-]{8,24}$/);
});
