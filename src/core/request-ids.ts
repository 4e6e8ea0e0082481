import { randomBytes } from "node:crypto";

/**
 * A source of ids for requests: unique within it, and almost surely among processes. An id costs no
 * randomness of its own, so it is no secret and can be guessed.
 */
export function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString("base64url");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
