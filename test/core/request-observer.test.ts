import { expect, test } from "vitest";
import { type ObserveOperation, tellAll } from "../../src/core/request-observer.js";

function recorder(told: unknown[][]): ObserveOperation {
  return (protocol, operation) => ({
    begin: () => {
      told.push(["begin", protocol, operation]);
      return 7;
    },
    end: (startedAt, outcome, requestId) => told.push(["end", startedAt, outcome, requestId]),
  });
}

test("nobody to tell is nobody asked", () => {
  expect(tellAll([])).toBeUndefined();
});

test("a single observer is told with nothing in between", () => {
  const only = recorder([]);
  expect(tellAll([only])).toBe(only);
});

test("two observers are told of the same request", () => {
  const [first, second]: unknown[][][] = [[], []];
  const operation = tellAll([recorder(first ?? []), recorder(second ?? [])])?.("http", "op");
  operation?.end(operation.begin(), "NOT_FOUND", "id");
  const expected = [
    ["begin", "http", "op"],
    ["end", 7, "NOT_FOUND", "id"],
  ];
  expect([first, second]).toEqual([expected, expected]);
});
