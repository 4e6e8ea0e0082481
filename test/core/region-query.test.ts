import fc from "fast-check";
import { expect, test } from "vitest";
import type { ListedRegion, RegionStatus } from "../../src/core/region.js";
import type { Block } from "../../src/core/region-list.js";
import { compareRegionNames, regionNameProblem } from "../../src/core/region-name.js";
import { pageOf, type RegionQuery } from "../../src/core/region-query.js";
import { regionStatus } from "../helpers/region-status.js";

/** The regions in blocks of two. */
function listOf(statuses: readonly RegionStatus[]): Block<ListedRegion>[] {
  const regions = statuses.map((status) => ({ ...status, status }));
  return regions.flatMap((_, at) => (at % 2 === 0 ? [{ regions: regions.slice(at, at + 2) }] : []));
}

const page = (statuses: readonly RegionStatus[], query: RegionQuery) =>
  pageOf(listOf(statuses), query, () => true);

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
])("%j matches %s", async (query, names) => {
  const found = await page(regions, query);
  expect(found.regions.map(({ name }) => name).join("")).toBe(names);
  expect(found.nextPageToken).toBe("");
});

test("a page has what is visible, and nothing that went since the list was taken", async () => {
  const [a, b, c] = listOf(regions).flatMap((block) => block.regions) as [
    ListedRegion,
    ListedRegion,
    ListedRegion,
  ];
  const blocks = [{ regions: [a, { ...b, state: "gone" as const }, c] }];
  const found = await pageOf(blocks, {}, ({ name }) => name !== "a");
  expect(found.regions.map(({ name }) => name)).toEqual(["c"]);
});

test.each([0, -1, 1001, 1.5, Number.NaN])("no page has %d regions", async (pageSize) => {
  await expect(page(regions, { pageSize })).rejects.toThrow(
    `page_size must be from 1 to 1000, got ${pageSize}`,
  );
});

test.each(["!", "YQ==", "YQ=", "4pi", "_w"])("%s is no page token", async (pageToken) => {
  await expect(page(regions, { pageToken })).rejects.toThrow("page_token is none of this service's");
});

test("a page has 100 regions unless more are asked for, and tells whether others match", async () => {
  const many = Array.from({ length: 201 }, (_, index) => regionStatus({ name: String(1000 + index) }));
  const first = await page(many, {});
  expect(first.regions).toHaveLength(100);
  const second = await page(many, { pageToken: first.nextPageToken, pageSize: 101 });
  expect(second.regions).toHaveLength(101);
  expect(second.nextPageToken).toBe("");
  expect(await page(many, { pageSize: 100, owner: "nobody" })).toEqual({ regions: [], nextPageToken: "" });
});

test("pages tell every region that stays just once, in order, whatever comes and goes between them", async () => {
  const name = fc
    .string({ unit: "binary", minLength: 1, maxLength: 3 })
    .filter((text) => regionNameProblem(text) === null);
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(name, { maxLength: 30 }),
      fc.array(fc.uniqueArray(name, { maxLength: 3 }), { maxLength: 30 }),
      fc.integer({ min: 1, max: 5 }),
      async (staying, comingAndGoing, pageSize) => {
        const seen: string[] = [];
        let pageToken = "";
        for (let pages = 0; pages < 100; pages++) {
          const passing = comingAndGoing[pages] ?? [];
          const sorted = [...new Set([...staying, ...passing])].sort(compareRegionNames);
          const answer = await page(
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
