import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { DurationHistogram } from "../../src/metrics/duration-histogram.js";

function histogram() {
  const registry = new Registry();
  const durations = new DurationHistogram("d_seconds", "help", ["a"]);
  registry.registerMetric(durations.asMetric());
  const lines = async () => (await registry.metrics()).trim().split("\n");
  return { durations, lines };
}

test("a duration counts in every bucket that it fits in, its bound included", async () => {
  const { durations, lines } = histogram();
  const of = durations.of({ a: "x" });
  of.observe(0.1);
  of.observe(0.11);
  of.observe(30_000);
  of.observe(30_001);
  const told = await lines();
  expect(told.slice(0, 2)).toEqual(["# HELP d_seconds help", "# TYPE d_seconds histogram"]);
  expect(told).toContain('d_seconds_bucket{a="x",le="0.0001"} 1');
  expect(told).toContain('d_seconds_bucket{a="x",le="0.00025"} 2');
  expect(told).toContain('d_seconds_bucket{a="x",le="10"} 2');
  expect(told).toContain('d_seconds_bucket{a="x",le="30"} 3');
  expect(told).toContain('d_seconds_bucket{a="x",le="+Inf"} 4');
  expect(told).toContain('d_seconds_count{a="x"} 4');
  const sum = told.find((line) => line.startsWith("d_seconds_sum"));
  expect(Number(sum?.split(" ")[1])).toBeCloseTo(60.00121, 9);
});

test("equal labels are one series, others are another", async () => {
  const { durations, lines } = histogram();
  expect(durations.of({ a: "x" })).toBe(durations.of({ a: "x" }));
  durations.of({ a: "x" }).observe(1);
  durations.of({ a: "y" }).observe(1);
  durations.of({ a: "y" }).observe(1);
  const told = await lines();
  expect(told).toContain('d_seconds_count{a="x"} 1');
  expect(told).toContain('d_seconds_count{a="y"} 2');
});
