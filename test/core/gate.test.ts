import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { anonymousCaller, type Caller } from "../../src/core/caller.js";
import { RegistryError } from "../../src/core/errors.js";
import { Gate, openGate } from "../../src/core/gate.js";
import { InFlight } from "../../src/core/in-flight.js";
import { Principals } from "../../src/core/principals.js";
import { Restrictions } from "../../src/core/restrictions.js";
import { Sessions } from "../../src/core/sessions.js";
import { FakeClock } from "../helpers/fake-clock.js";

const createSessions = () => new Sessions({ clock: new FakeClock(), onEnd: () => {} });

/** Wants the tokens `alice-token` and `ops-token`, the latter an administrator's. */
function tokens(): () => Principals {
  const hash = (token: string) => createHash("sha256").update(token).digest("hex");
  const parsed = Principals.parse(`alice: ${hash("alice-token")}\nops: ${hash("ops-token")} admin`);
  if (!(parsed instanceof Principals)) throw new Error(parsed.join("\n"));
  return () => parsed;
}

const call = (headers: Readonly<Record<string, string>> = {}) => ({
  header: (name: string) => headers[name],
});
const bearer = (name: string) => ({ authorization: `Bearer ${name}-token` });

function codeOf(pass: () => unknown): string {
  try {
    pass();
    return "OK";
  } catch (error) {
    if (error instanceof RegistryError) return error.code;
    throw error;
  }
}

test("without tokens a caller is anonymous, and in a session the session's", () => {
  const sessions = createSessions();
  const { secret, session } = sessions.open({ caller: anonymousCaller, resumeGraceMs: 0 });
  expect(openGate.identify(call(), sessions)).toEqual(anonymousCaller);
  expect(openGate.identify(call(bearer("alice")), sessions)).toEqual(anonymousCaller);
  expect(openGate.identify(call({ "cudashm-session": secret }), sessions)).toEqual({
    owner: `session:${session.id}`,
    isAdmin: false,
    session: session.id,
  });
});

test("with a token a caller is the token's, in a session too", () => {
  const sessions = createSessions();
  const gate = new Gate({ principals: tokens() });
  for (const [name, isAdmin] of [
    ["alice", false],
    ["ops", true],
  ] as const) {
    const caller: Caller = { owner: name, isAdmin, session: null };
    expect(gate.identify(call(bearer(name)), sessions)).toEqual(caller);
    const { secret, session } = sessions.open({ caller, resumeGraceMs: 0 });
    const within = call({ ...bearer(name), "cudashm-session": secret });
    expect(gate.identify(within, sessions)).toEqual({ ...caller, session: session.id });
  }
});

test("a session's secret is no token, and another's is of no use, to an administrator neither", () => {
  const sessions = createSessions();
  const gate = new Gate({ principals: tokens() });
  const alice = { owner: "alice", isAdmin: false, session: null };
  const secret = { "cudashm-session": sessions.open({ caller: alice, resumeGraceMs: 0 }).secret };
  expect(codeOf(() => gate.identify(call(secret), sessions))).toBe("UNAUTHENTICATED");
  expect(codeOf(() => gate.identify(call({ ...bearer("ops"), ...secret }), sessions))).toBe(
    "PERMISSION_DENIED",
  );
  expect(codeOf(() => openGate.identify(call(secret), sessions))).toBe("PERMISSION_DENIED");
});

test("a session's secret as bytes is refused, health excepted", () => {
  const sessions = createSessions();
  const { secret } = sessions.open({ caller: anonymousCaller, resumeGraceMs: 0 });
  for (const headers of [{}, { "cudashm-session": secret }]) {
    const within = call({ ...headers, "cudashm-session-bin": "bytes" });
    expect(codeOf(() => openGate.enter("shared-memory", within, sessions))).toBe("UNAUTHENTICATED");
    expect(openGate.enter("health", within, sessions)).toEqual(anonymousCaller);
  }
});

test("a call that is refused for its session is not counted as being answered", () => {
  const sessions = createSessions();
  const gate = new Gate({ inFlight: new InFlight(1) });
  const within = call({ "cudashm-session": "0".repeat(32) });
  for (let i = 0; i < 3; i++) {
    expect(codeOf(() => gate.enter("shared-memory", within, sessions))).toBe("UNAUTHENTICATED");
  }
  expect(codeOf(() => gate.enter("shared-memory", call(), sessions))).toBe("OK");
  expect(codeOf(() => gate.enter("shared-memory", call(), sessions))).toBe("RESOURCE_EXHAUSTED");
});

test("health asks for no session, and a restricted API is refused before one is looked for", () => {
  const sessions = createSessions();
  const restriction = { categories: ["shared-memory"], key: "k", value: "v" } as const;
  const gate = new Gate({ restrictions: Restrictions.ofHttp([restriction]) });
  const within = call({ "cudashm-session": "unknown" });
  expect(gate.enter("health", within, sessions)).toEqual(anonymousCaller);
  expect(codeOf(() => gate.enter("shared-memory", within, sessions))).toBe("PERMISSION_DENIED");
  expect(codeOf(() => gate.enter("metadata", within, sessions))).toBe("UNAUTHENTICATED");
});
