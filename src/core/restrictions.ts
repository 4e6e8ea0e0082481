import type { ApiCategory } from "./api-category.js";
import { type ErrorCode, RegistryError } from "./errors.js";
import { SecretDigest } from "./secret.js";

/** What a call brings along besides its message: headers over HTTP, metadata over gRPC. */
export interface HeaderSource {
  /**
   * The value of a header, whose name is in lower case. One that came more than once has all its values with `, `
   * between them, so that none of them is taken for the one that was meant. Undefined only if none came.
   */
  header(name: string): string | undefined;
}

/** Calls of some categories that only those may make who send `value` under `key`. */
export interface Restriction {
  readonly categories: readonly ApiCategory[];
  readonly key: string;
  readonly value: string;
}

interface Rule {
  readonly header: string;
  readonly expected: SecretDigest;
  readonly refusal: string;
}

/** Triton's restricted APIs: categories of calls that need a header with an agreed value. */
export class Restrictions {
  readonly #rules: ReadonlyMap<ApiCategory, Rule>;
  readonly #code: ErrorCode;

  private constructor(code: ErrorCode, rules: readonly (readonly [ApiCategory, Rule])[]) {
    this.#code = code;
    this.#rules = new Map(rules);
  }

  /** As `--http-restricted-api` has them: the key is the name of the header. */
  static ofHttp(restrictions: readonly Restriction[]): Restrictions {
    const refusal = (key: string) => `This API is restricted, expecting header '${key}'`;
    return new Restrictions(
      "PERMISSION_DENIED",
      rulesOf(restrictions, (key) => [key, refusal(key)]),
    );
  }

  /**
   * As `--grpc-restricted-protocol` has them. Metadata keys are always sent in lower case, so an upper-case
   * key is folded; as it stands it would lock everyone out.
   */
  static ofGrpc(restrictions: readonly Restriction[]): Restrictions {
    const headerOf = (key: string) => `triton-grpc-protocol-${key.toLowerCase()}`;
    const refusal = (header: string) => `This protocol is restricted, expecting header '${header}'`;
    return new Restrictions(
      "UNAVAILABLE",
      rulesOf(restrictions, (key) => [headerOf(key), refusal(headerOf(key))]),
    );
  }

  /** Throws Triton's refusal unless the call's category is free or it brings the value. */
  check(category: ApiCategory, call: HeaderSource): void {
    const rule = this.#rules.get(category);
    if (rule === undefined) return;
    const sent = call.header(rule.header);
    if (sent !== undefined && rule.expected.equals(SecretDigest.of(sent))) return;
    throw new RegistryError(this.#code, rule.refusal);
  }
}

function rulesOf(
  restrictions: readonly Restriction[],
  describe: (key: string) => [header: string, refusal: string],
): [ApiCategory, Rule][] {
  return restrictions.flatMap(({ categories, key, value }) => {
    const [header, refusal] = describe(key);
    const rule = { header: header.toLowerCase(), expected: SecretDigest.of(value), refusal };
    return categories.map((category): [ApiCategory, Rule] => [category, rule]);
  });
}
