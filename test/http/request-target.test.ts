import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nameInPath, splitTarget } from "../../src/http/request-target.js";

describe("splitTarget", () => {
  it.each([
    ["/a/b", "/a/b", ""],
    ["/a/../b?x=1?y", "/a/../b", "x=1?y"],
    ["/a/%2e%2e/b#c", "/a/%2e%2e/b#c", ""],
    ["//a", "//a", ""],
    ["http://host:8000/a/../b?x", "/a/../b", "x"],
    ["HTTP://[::1]/a", "/a", ""],
    ["http://host", "/", ""],
    ["http://host?x=/a", "/", "x=/a"],
    ["http:///a", "/a", ""],
    ["*", "*", ""],
    ["", "/", ""],
  ])("takes %j apart without folding anything", (target, path, query) => {
    expect(splitTarget(target)).toEqual({ path, query });
  });
});

describe("nameInPath", () => {
  const nameOf = (segment: string) => nameInPath(`/region/${segment}/status`, "/region/");

  it("gives back every name that was percent-encoded", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (name) => {
        expect(nameOf(encodeURIComponent(name))).toBe(name);
      }),
    );
  });

  it.each([
    ["a%2Fb", "a/b"],
    ["a%2541", "a%41"],
    ["%41", "A"],
    ["a+b", "a+b"],
    ["%EF%BB%BFx", "\ufeffx"],
    ["%2e%2e", ".."],
    ["__proto__", "__proto__"],
  ])("decodes %j once", (segment, name) => {
    expect(nameOf(segment)).toBe(name);
  });

  it.each([
    ["a cut escape", "a%"],
    ["an escape of one digit", "a%4"],
    ["an escape that is not hex", "%zz"],
    ["a lone continuation byte", "%80"],
    ["an overlong slash", "%C0%AF"],
    ["a surrogate", "%ED%A0%80"],
    ["a code point above the last", "%F4%90%80%80"],
    ["a cut sequence", "%E2%82"],
  ])("refuses %s", (_what, segment) => {
    expect(() => nameOf(segment)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARGUMENT",
        message: `the region name '${segment}' in the path is not percent-encoded UTF-8`,
      }),
    );
  });
});
