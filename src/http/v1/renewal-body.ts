import type { RenewOptions } from "../../core/registrar.js";
import { parseExactJson } from "../request-json.js";
import { Members } from "./members.js";

/** What a renewal's body says, which is nothing if it is empty. Throws INVALID_ARGUMENT. */
export function parseRenewal(body: Uint8Array): RenewOptions {
  if (body.byteLength === 0) return {};
  const root = new Members(parseExactJson(body), ["lease_seconds", "generation"]);
  return { leaseMs: root.seconds("lease_seconds"), generation: root.whole("generation") };
}
