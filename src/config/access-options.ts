import type { ApiCategory } from "../core/api-category.js";
import type { Restriction } from "../core/restrictions.js";
import { grpcRestriction, hostName, httpRestriction, origin } from "./access-kinds.js";
import { list } from "./list-option.js";
import { integer, optional, text } from "./option.js";

const nobody: readonly never[] = [];
const count = optional(integer(1, Number.MAX_SAFE_INTEGER));
const bytes = optional(integer(1, Number.MAX_SAFE_INTEGER, "BYTES"));

/** Who may call, and how much. */
export const accessOptions = {
  tokenFile: {
    flag: "token-file",
    kind: optional(text("PATH")),
    default: null,
    group: "Access",
    help: "Answer only callers with a token of this file, health excepted. One `name: SHA-256 of the token in hex` a line, with ` admin` after it for an administrator's; read again whenever it changes.",
  },
  httpRestrictedApi: {
    flag: "http-restricted-api",
    kind: list<Restriction>(httpRestriction),
    default: nobody,
    group: "Access",
    help: "Answer calls of these categories only with this header. Repeatable; in the variable, with blanks in between.",
  },
  grpcRestrictedProtocol: {
    flag: "grpc-restricted-protocol",
    kind: list<Restriction>(grpcRestriction),
    default: nobody,
    group: "Access",
    help: "The same over gRPC, the metadata key being triton-grpc-protocol- and the key in lower case. Repeatable.",
  },
  httpAllowedOrigin: {
    flag: "http-allowed-origin",
    kind: list<string>(origin),
    default: nobody,
    group: "Access",
    help: "Let web pages of this origin use the service; those of every other are answered 403. Repeatable.",
  },
  httpAllowedHost: {
    flag: "http-allowed-host",
    kind: list<string>(hostName),
    default: nobody,
    group: "Access",
    help: "Answer over HTTP to this name, to localhost and to IP addresses, and to no other; where HTTP listens on loopback that holds without it too. Repeatable.",
  },
  maxRegions: {
    flag: "max-regions",
    kind: count,
    default: null,
    group: "Limits",
    help: "Most regions there may be at once; no limit unless set.",
  },
  maxDeviceBytes: {
    flag: "max-device-bytes",
    kind: bytes,
    default: null,
    group: "Limits",
    help: "Most bytes of allocations that may be mapped on one device, shared ones counted once; no limit unless set.",
  },
  maxOwnerBytes: {
    flag: "max-owner-bytes",
    kind: bytes,
    default: null,
    group: "Limits",
    help: "Most bytes that the regions of one owner, a token's name or a session, may have together, by their byte_size; callers with neither are one owner. No limit unless set.",
  },
  maxRequestsInFlight: {
    flag: "max-requests-in-flight",
    kind: count,
    default: null,
    group: "Limits",
    help: "Most requests answered at once over both faces. A wait or a watch of regions counts as long as it lasts; health, reflection and, once it is open, the stream of a session do not count. No limit unless set.",
  },
  httpMaxConnections: {
    flag: "http-max-connections",
    kind: count,
    default: null,
    group: "Limits",
    help: "Most connections of HTTP; those beyond are closed at once. No limit unless set.",
  },
  grpcMaxConnections: {
    flag: "grpc-max-connections",
    kind: count,
    default: null,
    group: "Limits",
    help: "Most connections of gRPC; those beyond are closed at once. No limit unless set.",
  },
} as const;

/** What is wrong with options of access that are each right. */
export function accessProblems(config: {
  readonly httpRestrictedApi: readonly Restriction[];
  readonly grpcRestrictedProtocol: readonly Restriction[];
}): string[] {
  return [
    ...restrictedTwice("--http-restricted-api", config.httpRestrictedApi),
    ...restrictedTwice("--grpc-restricted-protocol", config.grpcRestrictedProtocol),
  ];
}

function restrictedTwice(flag: string, restrictions: readonly Restriction[]): string[] {
  const seen = new Set<ApiCategory>();
  const twice = new Set<ApiCategory>();
  for (const category of restrictions.flatMap(({ categories }) => categories)) {
    if (seen.has(category)) twice.add(category);
    seen.add(category);
  }
  return [...twice].map((category) => `${flag} restricts ${category} twice: give each category one key`);
}
