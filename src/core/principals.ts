import { RegistryError } from "./errors.js";
import { anonymous } from "./region.js";
import type { HeaderSource } from "./restrictions.js";
import { SecretDigest } from "./secret.js";

interface Entry {
  readonly name: string;
  readonly digest: SecretDigest;
}

const line = /^([A-Za-z0-9][\w.@-]{0,63})\s*:\s*([0-9a-fA-F]{64})$/;
const bearer = /^bearer +(\S+) *$/i;

/** Who may call: the names and token hashes of a token file. It never holds a token itself. */
export class Principals {
  readonly #entries: readonly Entry[];

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries;
  }

  /**
   * Reads lines of `name: <SHA-256 of the token in hex>`; a name may have several, blank lines and those that
   * begin with `#` say nothing. Or every problem there is, none of which repeats what the file has.
   */
  static parse(text: string): Principals | readonly string[] {
    const problems: string[] = [];
    const entries: Entry[] = [];
    const nameOf = new Map<string, string>();
    for (const [index, raw] of text.split(/\r?\n/).entries()) {
      const content = raw.trim();
      if (content === "" || content.startsWith("#")) continue;
      const where = `line ${index + 1}`;
      const [, name, hex] = line.exec(content) ?? [];
      if (name === undefined || hex === undefined) {
        problems.push(`${where}: expected a name, a colon and the 64 hex digits of a token's SHA-256`);
      } else if (name === anonymous) {
        problems.push(
          `${where}: ${anonymous} is what callers without a token are called; choose another name`,
        );
      } else if ((nameOf.get(hex.toLowerCase()) ?? name) !== name) {
        problems.push(`${where}: another name has the same token`);
      } else {
        nameOf.set(hex.toLowerCase(), name);
        entries.push({ name, digest: new SecretDigest(Buffer.from(hex, "hex")) });
      }
    }
    if (problems.length === 0 && entries.length === 0) problems.push("it names nobody, so nobody could call");
    return problems.length > 0 ? problems : new Principals(entries);
  }

  /**
   * The name of whoever sent the call's bearer token. Throws UNAUTHENTICATED. It takes as long for every token:
   * each is compared with all there are.
   */
  authenticate(call: HeaderSource): string {
    const token = bearer.exec(call.header("authorization") ?? "")?.[1];
    if (token === undefined) {
      throw new RegistryError(
        "UNAUTHENTICATED",
        "this service wants a token; send it as 'authorization: Bearer <token>'",
      );
    }
    const digest = SecretDigest.of(token);
    let name: string | undefined;
    for (const entry of this.#entries) {
      if (entry.digest.equals(digest)) name = entry.name;
    }
    if (name !== undefined) return name;
    throw new RegistryError(
      "UNAUTHENTICATED",
      "the token is not one of this service's; ask whoever runs it for one that is in its --token-file",
    );
  }
}
