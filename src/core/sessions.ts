import { randomBytes } from "node:crypto";
import type { Caller } from "./caller.js";
import type { Clock } from "./clock.js";
import { RegistryError } from "./errors.js";
import type { SessionRecord } from "./journal.js";
import { exiting } from "./refusals.js";
import { anonymous } from "./region.js";
import { SecretDigest } from "./secret.js";

/** The header, and over gRPC the metadata, by which a call says that it belongs to a session. */
export const sessionHeader = "cudashm-session";

/** The longest that a session may outlive its stream, in milliseconds: a day. */
const maxResumeGraceMs = 86_400_000;

/** Sessions there may be at once, those that wait to be resumed included. */
const maxSessions = 10_000;

/** What anyone may know of a session. */
export interface SessionInfo {
  /** 16 hex digits. */
  readonly id: string;
  /** Who owns what is registered in it: who opened it, or `session:` and the id if nothing is known of him. */
  readonly owner: string;
  /** How long it outlives its stream, in milliseconds. */
  readonly resumeGraceMs: number;
}

/** Why a stream no longer holds its session. */
export type HoldEnd = "released" | "taken over" | "stopping";

/** A stream's hold on its session. */
export interface Hold {
  readonly session: SessionInfo;
  /** 32 hex digits. Whoever has it acts for the session. */
  readonly secret: string;
  /** Resolves when the stream no longer holds the session. */
  readonly ended: Promise<HoldEnd>;
  /** The stream broke: the session ends unless another stream resumes it in time. Does nothing once it has ended. */
  release(): void;
  /** The client is done with the session: it ends at once. Does nothing once the hold has ended. */
  end(): void;
}

export interface SessionsOptions {
  readonly clock: Clock;
  /** Told of every session that ended, once. Must not reject. */
  readonly onEnd: (session: SessionInfo) => void | Promise<void>;
  /** So many random bytes; for tests. */
  readonly random?: (byteSize: number) => Buffer;
}

interface Session {
  readonly info: SessionInfo;
  /** Hex. The secret itself is kept nowhere. */
  readonly digest: string;
  /** Lets go of the stream that holds it; undefined while none does. */
  endHold: ((why: HoldEnd) => void) | undefined;
  /** Stops the time that is left to resume it. */
  cancelGrace: (() => void) | undefined;
}

/** The sessions there are: each lives as long as a stream holds it, and a grace longer. */
export class Sessions {
  readonly #clock: Clock;
  readonly #onEnd: (session: SessionInfo) => void | Promise<void>;
  readonly #random: (byteSize: number) => Buffer;
  readonly #byId = new Map<string, Session>();
  readonly #byDigest = new Map<string, Session>();
  #isClosed = false;

  constructor({ clock, onEnd, random = randomBytes }: SessionsOptions) {
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#random = random;
  }

  /** Begins a session. Throws INVALID_ARGUMENT, RESOURCE_EXHAUSTED, or UNAVAILABLE once all were closed. */
  open({ caller, resumeGraceMs }: { readonly caller: Caller; readonly resumeGraceMs: number }): Hold {
    if (!(resumeGraceMs >= 0 && resumeGraceMs <= maxResumeGraceMs)) {
      throw new RegistryError(
        "INVALID_ARGUMENT",
        `a session outlives its stream by 0 to ${maxResumeGraceMs / 1000} seconds, got ${resumeGraceMs / 1000}`,
      );
    }
    if (this.#isClosed) throw exiting();
    if (this.#byId.size >= maxSessions) {
      throw new RegistryError(
        "RESOURCE_EXHAUSTED",
        `there are as many sessions as this service takes (${maxSessions}); end some first`,
      );
    }
    const id = this.#random(8).toString("hex");
    const secret = this.#random(16).toString("hex");
    const principal = principalOf(caller.owner, caller.session);
    const info = { id, owner: principal === anonymous ? ownerOfSession(id) : principal, resumeGraceMs };
    const session = this.#add(info, SecretDigest.of(secret).hex);
    return this.#hold(session, secret);
  }

  /**
   * Goes on with a session; a stream that still holds it is told that it was taken over. Throws UNAUTHENTICATED
   * if there is no such session, PERMISSION_DENIED if another opened it, or UNAVAILABLE once all were closed.
   */
  resume(secret: string, caller: Caller): Hold {
    const session = this.#find(secret, principalOf(caller.owner, caller.session));
    if (this.#isClosed) throw exiting();
    session.endHold?.("taken over");
    session.cancelGrace?.();
    session.cancelGrace = undefined;
    return this.#hold(session, secret);
  }

  /**
   * The session that a call belongs to which brings its secret; `principal` is who the call is by its token, or
   * anonymous. Throws UNAUTHENTICATED if there is no such session, PERMISSION_DENIED if another opened it.
   */
  identify(secret: string, principal: string): SessionInfo {
    return this.#find(secret, principal).info;
  }

  /** Whether it has not ended: a stream holds it, or one may still resume it. */
  isOpen(id: string): boolean {
    return this.#byId.has(id);
  }

  /** What to write down of a session; null if it has ended. */
  record(id: string): SessionRecord | null {
    const session = this.#byId.get(id);
    return session === undefined ? null : { ...session.info, secretDigest: session.digest };
  }

  /**
   * Takes up a session of an earlier process, whose stream broke with it: its grace begins now. Without a grace
   * it ended with that process, so it is not open after this. Does nothing if it is open already.
   */
  restore({ secretDigest, ...info }: SessionRecord): void {
    if (info.resumeGraceMs === 0 || this.#byId.has(info.id)) return;
    this.#startGrace(this.#add(info, secretDigest));
  }

  /** The process stops: every stream is let go of, and no session begins or ends from now on. */
  closeAll(): void {
    this.#isClosed = true;
    for (const session of this.#byId.values()) {
      session.cancelGrace?.();
      session.endHold?.("stopping");
    }
  }

  #find(secret: string, principal: string): Session {
    const session = this.#byDigest.get(SecretDigest.of(secret).hex);
    if (session === undefined) {
      throw new RegistryError(
        "UNAUTHENTICATED",
        `the session is unknown or has ended; open a new one, or send no ${sessionHeader}`,
      );
    }
    if (principalOf(session.info.owner, session.info.id) === principal) return session;
    throw new RegistryError(
      "PERMISSION_DENIED",
      "the session was opened by another; call with the token that it was opened with",
    );
  }

  #add(info: SessionInfo, digest: string): Session {
    const session: Session = { info, digest, endHold: undefined, cancelGrace: undefined };
    this.#byId.set(info.id, session);
    this.#byDigest.set(digest, session);
    return session;
  }

  #hold(session: Session, secret: string): Hold {
    let resolve: (why: HoldEnd) => void = () => {};
    const ended = new Promise<HoldEnd>((settle) => {
      resolve = settle;
    });
    const endHold = (why: HoldEnd) => {
      session.endHold = undefined;
      resolve(why);
    };
    session.endHold = endHold;
    const letGo = (then: (session: Session) => void) => () => {
      if (session.endHold !== endHold) return;
      endHold("released");
      then(session);
    };
    const { info } = session;
    return {
      session: info,
      secret,
      ended,
      release: letGo(() => (info.resumeGraceMs === 0 ? this.#end(session) : this.#startGrace(session))),
      end: letGo(() => this.#end(session)),
    };
  }

  #startGrace(session: Session): void {
    session.cancelGrace = this.#clock.after(session.info.resumeGraceMs, () => this.#end(session));
  }

  #end({ info, digest }: Session): void {
    this.#byId.delete(info.id);
    this.#byDigest.delete(digest);
    void this.#onEnd(info);
  }
}

function ownerOfSession(id: string): string {
  return `session:${id}`;
}

/** Who it is by his token: a session's own name says nothing about that. No token's name has a colon. */
function principalOf(owner: string, session: string | null): string {
  return session !== null && owner === ownerOfSession(session) ? anonymous : owner;
}
