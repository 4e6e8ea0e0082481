import { RegistryError } from "./errors.js";
import { anonymous } from "./region.js";
import type { HeaderSource } from "./restrictions.js";
import { SecretDigest } from "./secret.js";

/** Whose token a call brought. */
export interface Principal {
  readonly name: string;
  /** Whether it may do as it likes with regions of others. */
  readonly isAdmin: boolean;
}

interface Entry {
  readonly principal: Principal;
  readonly digest: SecretDigest;
}

// No name has a colon: the owners that a session makes up have one.
const line = /^([A-Za-z0-9][\w.@-]{0,63})\s*:\s*([0-9a-fA-F]{64})(\s+admin)?$/;
const bearer = /^bearer +(\S+) *$/i;

/** Who may call: the names and token hashes of a token file. It never holds a token itself. */
export class Principals {
  readonly #entries: readonly Entry[];

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries;
  }

  /**
   * Reads lines of `name: <SHA-256 of the token in hex>`, with ` admin` after it for a token of an administrator;
   * a name may have several, blank lines and those that begin with `#` say nothing. Or every problem there is, none
   * of which repeats what the file has.
   */
  static parse(text: string): Principals | readonly string[] {
    const problems: string[] = [];
    const entries: Entry[] = [];
    const principalOf = new Map<string, Principal>();
    for (const [index, raw] of text.split(/\r?\n/).entries()) {
      const content = raw.trim();
      if (content === "" || content.startsWith("#")) continue;
      const where = `line ${index + 1}`;
      const [, name, hex, mark] = line.exec(content) ?? [];
      if (name === undefined || hex === undefined) {
        problems.push(
          `${where}: expected a name, a colon and the 64 hex digits of a token's SHA-256, then nothing or admin`,
        );
      } else if (name === anonymous) {
        problems.push(
          `${where}: ${anonymous} is what callers without a token are called; choose another name`,
        );
      } else {
        const principal = { name, isAdmin: mark !== undefined };
        const other = principalOf.get(hex.toLowerCase()) ?? principal;
        if (other.name !== name) problems.push(`${where}: another name has the same token`);
        else if (other.isAdmin !== principal.isAdmin) {
          problems.push(`${where}: the same token is on another line, and admin is on one of the two only`);
        }
        principalOf.set(hex.toLowerCase(), principal);
        entries.push({ principal, digest: new SecretDigest(Buffer.from(hex, "hex")) });
      }
    }
    if (problems.length === 0 && entries.length === 0) problems.push("it names nobody, so nobody could call");
    return problems.length > 0 ? problems : new Principals(entries);
  }

  /**
   * Whoever sent the call's bearer token. Throws UNAUTHENTICATED. It takes as long for every token:
   * each is compared with all there are.
   */
  authenticate(call: HeaderSource): Principal {
    const token = bearer.exec(call.header("authorization") ?? "")?.[1];
    if (token === undefined) {
      throw new RegistryError(
        "UNAUTHENTICATED",
        "this service wants a token; send it as 'authorization: Bearer <token>'",
      );
    }
    const digest = SecretDigest.of(token);
    let found: Principal | undefined;
    for (const { principal, digest: known } of this.#entries) {
      if (known.equals(digest)) found = principal;
    }
    if (found !== undefined) return found;
    throw new RegistryError(
      "UNAUTHENTICATED",
      "the token is not one of this service's; ask whoever runs it for one that is in its --token-file",
    );
  }
}
