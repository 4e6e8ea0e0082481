import { describe, expect, test } from "vitest";
import { durationIn, flagIn, readQuery, textIn, uint64In, wordIn } from "../../../src/http/v1/query.js";

const names = ["wait", "force", "generation", "page_size"] as const;
const read = (query: string) => readQuery(query, names);
const refused = (message: string | RegExp) =>
  expect.objectContaining({
    code: "INVALID_ARGUMENT",
    message: typeof message === "string" ? message : expect.stringMatching(message),
  });

describe("a query", () => {
  test.each<[string, object]>([
    ["", {}],
    ["&", {}],
    ["wait=5s&force=true", { wait: "5s", force: "true" }],
    ["wait", { wait: "" }],
    ["wait=", { wait: "" }],
    ["wait=a=b", { wait: "a=b" }],
    ["wait=a+b%2B%26%3D%C3%A4", { wait: "a b+&=ä" }],
    ["w%61it=x&", { wait: "x" }],
  ])("%j is read", (query, values) => {
    expect(read(query)).toEqual(values);
  });

  test.each([
    ["pagesize=1", "unknown query parameter 'pagesize'; did you mean 'page_size'?"],
    ["Wait=1", "unknown query parameter 'Wait'; did you mean 'wait'?"],
    ["=1", "unknown query parameter; expected are wait, force, generation, page_size"],
    ["__proto__=1", "unknown query parameter; expected are wait, force, generation, page_size"],
    [`${"wait".repeat(1000)}=1`, "unknown query parameter; expected are wait, force, generation, page_size"],
    ["wait=1s&wait=1s", "'wait' must be given at most once"],
    ["wait=&w%61it=1s", "'wait' must be given at most once"],
    ["wait=%", "the query is not percent-encoded UTF-8"],
    ["wait=%ff", "the query is not percent-encoded UTF-8"],
    ["%zz=1", "the query is not percent-encoded UTF-8"],
  ])("%s is refused", (query, message) => {
    expect(() => read(query)).toThrow(refused(message));
  });

  test("of nothing that is known takes nothing", () => {
    expect(() => readQuery("a=1", [])).toThrow(refused("unknown query parameter; none is expected"));
  });
});

describe("a duration", () => {
  test.each([
    ["0s", 0],
    ["5s", 5000],
    ["1500ms", 1500],
    ["2m", 120_000],
    ["007s", 7000],
  ])("%s is %i ms", (text, ms) => {
    expect(durationIn(read(`wait=${text}`), "wait")).toBe(ms);
  });

  test.each(["", "5", "s", "1.5s", "-1s", "5 s", "5S", "1h", "1e3ms", "9999999999ms", "5s5s"])(
    "%j is none",
    (text) => {
      expect(() => durationIn(read(`wait=${text}`), "wait")).toThrow(
        refused("'wait' must be a duration such as 5s, 1500ms or 2m"),
      );
    },
  );
});

test("what is left out is undefined, whatever it would be", () => {
  const query = read("");
  const words = ["a"] as const;
  expect([durationIn(query, "wait"), flagIn(query, "force"), uint64In(query, "generation")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect([textIn(query, "wait"), wordIn(query, "wait", words)]).toEqual([undefined, undefined]);
});

test("a text may be empty, and says nothing then; a flag, a number and a word may not", () => {
  const query = read("force=&generation=&wait=");
  expect(textIn(query, "wait")).toBeUndefined();
  expect(() => flagIn(query, "force")).toThrow(refused("'force' must be true or false"));
  expect(() => uint64In(query, "generation")).toThrow(
    refused("'generation' must be a whole number from 0 to 18446744073709551615"),
  );
  expect(() => wordIn(query, "wait", ["a", "b"])).toThrow(refused("'wait' must be one of a, b"));
});
