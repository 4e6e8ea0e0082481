import { expect, test } from "vitest";
import { chooseCores, parseCoreList } from "../../bench/machine.js";
import { matching, readBenchOptions } from "../../bench/options.js";

test("seven rounds of a second unless told otherwise, and one short round if tiny", () => {
  expect(readBenchOptions([])).toMatchObject({ cases: [], rounds: 7, seconds: 1, json: false, tiny: false });
  expect(readBenchOptions(["--tiny"])).toMatchObject({ rounds: 1, seconds: 0.05 });
  expect(readBenchOptions(["http", "--row=of one", "--rounds", "3", "--seconds=0.5"])).toMatchObject({
    cases: ["http"],
    row: "of one",
    rounds: 3,
    seconds: 0.5,
  });
});

test.each([["--rounds=0"], ["--rounds=1.5"], ["--rounds=many"], ["--seconds=-1"], ["--seconds=Infinity"]])(
  "%s is refused",
  (argument) => {
    expect(() => readBenchOptions([argument])).toThrow(/expected a number above 0, got/);
  },
);

test("an option that there is none of is refused", () => {
  expect(() => readBenchOptions(["--fast"])).toThrow(/--fast/);
});

test("a case is found by its name, and else all are whose names have the word", () => {
  const all = ["http", "status-http", "grpc"].map((name) => ({ name }));
  const names = (words: string[]) => matching(all, words).map(({ name }) => name);
  expect(names([])).toEqual(["http", "status-http", "grpc"]);
  expect(names(["http"])).toEqual(["http"]);
  expect(names(["ht"])).toEqual(["http", "status-http"]);
  expect(names(["grpc", "status"])).toEqual(["status-http", "grpc"]);
  expect(() => names(["nothing"])).toThrow(
    "no case has 'nothing' in its name; there are http, status-http, grpc",
  );
});

test("a list of cores is read as the kernel writes it", () => {
  expect(parseCoreList("0-2,5")).toEqual([0, 1, 2, 5]);
  expect(parseCoreList("7")).toEqual([7]);
  expect(parseCoreList("")).toEqual([]);
});

test("servers and load never share a core", () => {
  const { server, load } = chooseCores();
  expect(server === null ? load === null : server !== load).toBe(true);
});
