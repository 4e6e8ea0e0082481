import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { Principals } from "../../src/core/principals.js";
import { holds, timeout } from "./budget.js";
import { mutated } from "./mutations.js";

const tokens = ["alice's", "bob's", "ops'"];
const digestOf = (token: string) => createHash("sha256").update(token).digest("hex");
const real = [
  "# who may call",
  `alice: ${digestOf("alice's")}`,
  "",
  `bob@host.example : ${digestOf("bob's").toUpperCase()}\r`,
  `ops:${digestOf("ops'")} admin`,
].join("\n");

/** A reading of the file in other words: who is who by the whole lines that say so. */
function callersIn(text: string): Map<string, string> {
  const callers = new Map<string, string>();
  for (const line of text.split("\n").map((each) => each.trim())) {
    const found = /^([^:]+):(.+)$/.exec(line);
    if (line.startsWith("#") || found === null) continue;
    const [digest = "", ...marks] = (found[2] ?? "").trim().split(/\s+/);
    callers.set(digest.toLowerCase(), `${(found[1] ?? "").trim()} ${marks.join(" ")}`.trim());
  }
  return callers;
}

test(
  "a token file that was spoiled is refused without a word of what is in it, or lets in whom its lines name",
  async () => {
    await holds(
      fc.property(mutated, (mutate) => {
        const text = mutate(Buffer.from(real)).toString();
        const principals = Principals.parse(text);
        if (!(principals instanceof Principals)) {
          expect(principals.length).toBeGreaterThan(0);
          for (const token of tokens) {
            const half = digestOf(token).slice(0, 16);
            expect(principals.join("\n").toLowerCase()).not.toContain(half);
          }
          return;
        }
        const callers = callersIn(text);
        for (const token of tokens) {
          const call = { header: () => `Bearer ${token}` };
          const known = callers.get(digestOf(token));
          expect(callerOf(principals, call)).toBe(known ?? null);
        }
      }),
      1500,
    );
  },
  timeout,
);

function callerOf(principals: Principals, call: { header(): string }): string | null {
  try {
    const { name, isAdmin } = principals.authenticate(call);
    return isAdmin ? `${name} admin` : name;
  } catch (error) {
    expect(error).toBeInstanceOf(RegistryError);
    return null;
  }
}
