import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ServiceMetrics } from "../../src/metrics/service-metrics.js";
import { FakeDriver } from "../helpers/fake-driver.js";

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat?: string }[];
}

const dashboard = JSON.parse(readFileSync("deploy/grafana/cudashm.json", "utf8")) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
};

interface Described {
  readonly name: string;
  readonly type: string;
  readonly labelNames?: readonly string[];
}

const measured = Object.assign(new FakeDriver(), { description: null, runningCalls: () => [] });
const metrics = new ServiceMetrics(measured).register.getMetricsAsArray() as unknown as Described[];

/** The labels of each name that a scrape can have. */
const labelsOf = new Map(
  metrics.flatMap(({ name, type, labelNames = [] }) =>
    type === "histogram"
      ? [`${name}_bucket`, `${name}_sum`, `${name}_count`].map(
          (part) => [part, [...labelNames, "le"]] as const,
        )
      : [[name, labelNames] as const],
  ),
);

const queries = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr, legendFormat = "" }) => ({ title, expr, legendFormat })),
);

const namesIn = (expression: string) => expression.match(/\b(cudashm|process|nodejs)_\w+/g) ?? [];

test.each(queries.map((query) => [query.title, query] as const))(
  "%s asks for metrics and labels that there are",
  (_, { expr, legendFormat }) => {
    const names = namesIn(expr);
    expect(names).toHaveLength(1);
    const labels = labelsOf.get(names[0] ?? "");
    expect(labels, names[0]).toBeDefined();
    const selected = [...expr.matchAll(/(\w+)=~?"/g)].map(([, label]) => label);
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
    for (const label of [...selected, ...grouped, ...shown])
      expect([...(labels ?? []), "instance"]).toContain(label);
    // A counter means something as a rate only.
    const isCounter = /_(total|bucket)$/.test(names[0] ?? "");
    expect(expr.includes("rate(")).toBe(isCounter);
  },
);

test("it shows every metric of ours, on every instance that is chosen", () => {
  const shown = new Set(queries.flatMap(({ expr }) => namesIn(expr)));
  for (const { name, type } of metrics.filter((metric) => metric.name.startsWith("cudashm_"))) {
    expect(shown).toContain(type === "histogram" ? `${name}_bucket` : name);
  }
  for (const { expr } of queries) expect(expr).toContain('instance=~"$instance"');
  const instance = dashboard.templating.list.find(({ name }) => name === "instance");
  expect(labelsOf.has(namesIn(instance?.definition ?? "")[0] ?? "")).toBe(true);
});

test("its panels have ids of their own and do not cover each other", () => {
  const { panels } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24);
    return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
});
