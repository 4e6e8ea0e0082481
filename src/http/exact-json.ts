import { stringify } from "lossless-json";

/** The value as JSON, in which a bigint keeps every digit: JSON.stringify knows none, and is twice as fast. */
export function exactJson(value: object): string {
  let isExact = true;
  const json = JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member !== "bigint") return member;
    const number = Number(member);
    if (!Number.isSafeInteger(number)) isExact = false;
    return number;
  });
  return isExact ? json : (stringify(value) ?? "");
}
