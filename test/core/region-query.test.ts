import fc from "fast-check";
import { expect, test } from "vitest";
import type { RegionStatus } from "../../src/core/region.js";
import { compareRegionNames, regionNameProblem } from "../../src/core/region-name.js";
import { pageOf, type RegionQuery } from "../../src/core/region-query.js";
import { regionStatus } from "../helpers/region-status.js";

const regions = [
  regionStatus({ name: "a", owner: "alice", labels: new Map([["model", "resnet"]]) }),
  regionStatus({ name: "b", owner: "bob", deviceId: 1, deviceUuid: "GPU-1", state: "orphaned" }),
  regionStatus({
    name: "c",
    owner: "alice",
    state: "draining",
    labels: new Map([
      ["a", "1"],
      ["mode", "l=x"],
    ]),
  }),
];

test.each<[RegionQuery, string]>([
  [{}, "abc"],
  [{ owner: "alice" }, "ac"],
  [{ owner: "ali" }, ""],
  [{ device: "1" }, "b"],
  [{ device: "GPU-1" }, "b"],
  [{ device: "01" }, ""],
  [{ state: "orphaned" }, "b"],
  [{ labelPrefix: "model" }, "a"],
  [{ labelPrefix: "mode" }, "ac"],
  [{ labelPrefix: "model=res" }, "a"],
  [{ labelPrefix: "resnet" }, ""],
  [{ labelPrefix: "" }, "ac"],
  [{ owner: "alice", state: "draining", labelPrefix: "a=" }, "c"],
])("%j matches %s", (query, names) => {
  const page = pageOf(regions, query);
  expect(page.regions.map(({ name }) => name).join("")).toBe(names);
  expect(page.nextPageToken).toBe("");
});

test.each([0, -1, 1001, 1.5, Number.NaN])("no page has %d regions", (pageSize) => {
  expect(() => pageOf(regions, { pageSize })).toThrow(`page_size must be from 1 to 1000, got ${pageSize}`);
});

test.each(["!", "YQ==", "YQ=", "4pi", "_w"])("%s is no page token", (pageToken) => {
  expect(() => pageOf(regions, { pageToken })).toThrow("page_token is none of this service's");
});

test("a page has 100 regions unless more are asked for, and tells whether others match", () => {
  const many = Array.from({ length: 201 }, (_, index) => regionStatus({ name: String(1000 + index) }));
  const first = pageOf(many, {});
  expect(first.regions).toHaveLength(100);
  const second = pageOf(many, { pageToken: first.nextPageToken, pageSize: 101 });
  expect(second.regions).toHaveLength(101);
  expect(second.nextPageToken).toBe("");
  expect(pageOf(many, { pageSize: 100, owner: "nobody" })).toEqual({ regions: [], nextPageToken: "" });
});

test("pages tell every region that stays just once, in order, whatever comes and goes between them", () => {
  const name = fc
    .string({ unit: "binary", minLength: 1, maxLength: 3 })
    .filter((text) => regionNameProblem(text) === null);
  fc.assert(
    fc.property(
      fc.uniqueArray(name, { maxLength: 30 }),
      fc.array(fc.uniqueArray(name, { maxLength: 3 }), { maxLength: 30 }),
      fc.integer({ min: 1, max: 5 }),
      (staying, comingAndGoing, pageSize) => {
        const seen: string[] = [];
        let pageToken = "";
        for (let page = 0; page < 100; page++) {
          const passing = comingAndGoing[page] ?? [];
          const sorted = [...new Set([...staying, ...passing])].sort(compareRegionNames);
          const answer = pageOf(
            sorted.map((name) => regionStatus({ name })),
            { pageSize, pageToken },
          );
          seen.push(...answer.regions.map((region: RegionStatus) => region.name));
          pageToken = answer.nextPageToken;
          if (pageToken === "") break;
        }
        expect(pageToken).toBe("");
        expect(seen).toEqual([...new Set(seen)].sort(compareRegionNames));
        expect(seen.filter((name) => staying.includes(name))).toEqual([...staying].sort(compareRegionNames));
      },
    ),
    { numRuns: 200 },
  );
});
