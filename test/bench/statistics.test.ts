import { expect, test } from "vitest";
import { quantile, spreadOf } from "../../bench/statistics.js";

test("a spread has the median, the ends, and the values in their order", () => {
  expect(spreadOf([3, 1, 10])).toEqual({ median: 3, min: 1, max: 10, values: [3, 1, 10] });
});

test("the median of an even number of values lies between the middle two", () => {
  expect(spreadOf([4, 1, 2, 100]).median).toBe(3);
});

test("there is no spread of nothing", () => {
  expect(() => spreadOf([])).toThrow(RangeError);
  expect(() => quantile([], 0.5)).toThrow(RangeError);
});

test("a quantile between two values is between them in proportion", () => {
  expect(quantile([0, 10], 0.99)).toBeCloseTo(9.9);
  expect(quantile([0, 10], 1)).toBe(10);
});
