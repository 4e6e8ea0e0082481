import { expect, test } from "vitest";
import { clientRequestId, createRequestIds } from "../../src/core/request-ids.js";

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

test.each([
  "a",
  "0f8fad5b-d9cd-469f-a165-70867728950e",
  "00-0af7651916cd43dd-b7ad6b7169203331-01",
  "x".repeat(64),
])("the id that a client gives is taken as it is: %s", (given) => {
  expect(clientRequestId(given)).toBe(given);
});

test.each([
  undefined,
  "",
  "two words",
  "a,b",
  "line\nfeed",
  "é",
  '"',
  "<b>",
  "x".repeat(65),
  `${"A".repeat(86)}==`,
])(
  "an id that could not stand in a header or a log line, or is as long as a handle, is not taken: %j",
  (given) => {
    expect(clientRequestId(given)).toBeUndefined();
  },
);
