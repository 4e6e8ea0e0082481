import type { Request } from "./answer.js";
import type { Outcome } from "./mixed-client.js";

type Expected = Readonly<Record<string, RegExp>>;

const any = /^/;
const unknown = { NOT_FOUND: /Unable to find cuda shared memory region/ };
const ofAnother = { PERMISSION_DENIED: /belongs to another client/ };
const onItsWayOut = /is being unregistered|could not be closed; unregister it again|unregistered by force/;
const notClosed = /CUDA_ERROR_\w+ \(\d+\)|^\{?"?[^:]*:? ?"?Failed to unregister the following/;
const refusedByDriver = /CUDA_ERROR_\w+ \(\d+\)/;

const copied = {
  ...unknown,
  FAILED_PRECONDITION: onItsWayOut,
  INTERNAL: refusedByDriver,
  /** The region may be another when its contents are asked for than when its size was. */
  OUT_OF_RANGE: any,
};
const registered = {
  ALREADY_EXISTS: /already in manager/,
  INVALID_ARGUMENT: /CUDA_ERROR_\w+ \(\d+\)|an earlier mapping of this handle could not be closed/,
  INTERNAL: refusedByDriver,
};

/** What a call may be answered besides OK, whatever else is under way, and what the text then has to say. */
const expected = {
  registerAsTriton: registered,
  register: {
    ...registered,
    FAILED_PRECONDITION: /cannot be replaced|has generation \d+, not \d+/,
    ...ofAnother,
  },
  unregisterAsTriton: { INTERNAL: notClosed },
  unregisterAll: { INTERNAL: notClosed },
  renew: { ...unknown, FAILED_PRECONDITION: onItsWayOut, ...ofAnother },
  release: {
    ...unknown,
    INTERNAL: notClosed,
    DEADLINE_EXCEEDED: /still used by/,
    ...ofAnother,
  },
  statusAll: {},
  status: unknown,
  get: { DEADLINE_EXCEEDED: /did not become ready/ },
  list: {},
  devices: {},
  server: {},
  read: { ...copied, ...ofAnother },
  write: { ...copied, ...ofAnother },
  checksum: { ...copied, ...ofAnother },
  /** It begins with the oldest change that is known, which the next change may already push out. */
  watch: { RESOURCE_EXHAUSTED: /the watch fell behind/ },
} as const satisfies Record<Request["op"], Expected>;

/** What is wrong with what a call was answered; null if nothing is. `injects` says whether the driver has faults. */
export function problemOf(
  { request, disturbance, session, answer: { code, text } }: Outcome,
  injects: boolean,
): string | null {
  if (code === "OK" || code === "LOST") return null;
  if (code === "DEADLINE_EXCEEDED" && disturbance?.kind === "deadline") return null;
  if (code === "UNAUTHENTICATED" && session !== null && /session/.test(text)) return null;
  const allowed: Expected = expected[request.op];
  const pattern = allowed[code];
  const isOfDriver =
    code === "INTERNAL" || (code === "INVALID_ARGUMENT" && request.op.startsWith("register"));
  if (pattern?.test(text) === true && (injects || !isOfDriver)) return null;
  return `${request.op} was answered ${code}: ${text}`;
}
