import { RegistryError } from "../../core/errors.js";
import { parseUint64 } from "../uint64.js";
import type { EventId } from "./event-text.js";

/** The id of the last event that a client got before it came back; null if it got none. Throws INVALID_ARGUMENT. */
export function parseLastEventId(text: string | undefined): EventId | null {
  if (text === undefined || text === "") return null;
  const slash = text.lastIndexOf("/");
  const revision = parseUint64(text.slice(slash + 1));
  if (slash < 1 || revision === null) {
    throw new RegistryError(
      "INVALID_ARGUMENT",
      "Last-Event-ID is none of this service's; send the id of the last event, or leave it out",
    );
  }
  return { instanceId: text.slice(0, slash), revision };
}
