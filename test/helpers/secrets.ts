import { inspect } from "node:util";
import { emulatedHandleMagic } from "../../src/native/emulated-driver.js";

/** Enough of a secret to know it by, short enough to be found in what was cut. */
const markBytes = 15;

/** Scanning costs secrets times text, and one kind of leak shows with any of them. */
const maxSecrets = 64;
const maxTextLength = 64 * 1024;

/** By the first form, so that a secret kept twice is looked for once. */
const marks = new Map<string, { readonly what: string; readonly forms: readonly string[] }>();
const texts = new Set<string>();
const logs: (() => unknown)[] = [];

/** Every way in which these bytes could be written down. */
function formsOf(bytes: Uint8Array): readonly string[] {
  const mark = Buffer.from(bytes.subarray(0, markBytes));
  const hex = mark.toString("hex");
  return [
    mark.toString("latin1"),
    mark.toString("base64"),
    mark.toString("base64url"),
    hex,
    hex.toUpperCase(),
    hex.replace(/..(?=.)/g, "$& "),
    mark.join(","),
    mark.join(", "),
  ];
}

function keep(what: string, forms: readonly string[]): void {
  if (marks.size < maxSecrets) marks.set(forms[0] ?? "", { what, forms });
}

// Every handle of the emulated driver begins so.
keep("a handle of the emulated driver", formsOf(Buffer.from(emulatedHandleMagic)));

/** From now on nothing that is answered or logged in this test file may hold these bytes in any form. */
export function keepSecret(what: string, bytes: Uint8Array): void {
  keep(what, formsOf(bytes));
}

/** The same for a device pointer. */
export function keepPointerSecret(pointer: bigint): void {
  keep("a device pointer", [String(pointer), pointer.toString(16)]);
}

/** Remembers what a service told somebody. */
export function told(answer: unknown): void {
  const text = typeof answer === "string" ? answer : inspect(answer, { depth: 10, maxArrayLength: 200 });
  texts.add(text.slice(0, maxTextLength));
}

/** Remembers a log, to be read when the tests are over. */
export function tellsLater(log: () => unknown): void {
  logs.push(log);
}

/** Which secrets were told, and where. Empty is good. */
export function leaks(): string[] {
  for (const log of logs) for (const line of [log()].flat()) told(JSON.stringify(line) ?? "");
  const found: string[] = [];
  for (const { what, forms } of marks.values()) {
    for (const text of texts) {
      const form = forms.find((each) => text.includes(each));
      if (form !== undefined) found.push(`${what} as ${form} in ${text.slice(0, 500)}`);
    }
  }
  return found;
}
