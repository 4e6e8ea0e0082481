import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";

/** What TLS is made of. */
export type TlsPart = "certificate" | "key" | "clientRoots";

/** What is in each part's file, or in words why it could not be read; null for a part that is not wanted. */
export type TlsContents = Readonly<Record<TlsPart, Buffer | string | null>>;

/** What is wrong with one part. */
export interface TlsProblem {
  readonly part: TlsPart;
  readonly text: string;
}

/** The parts do not make a context for TLS. */
export class TlsError extends Error {
  override readonly name = "TlsError";
  readonly problems: readonly TlsProblem[];

  constructor(problems: readonly TlsProblem[]) {
    super(problems.map(({ text }) => text).join("; "));
    this.problems = problems;
  }
}

/**
 * The context for `contents`. Throws TlsError with every problem there is: OpenSSL would tell the first in
 * words of its own, and take roots that are none for none at all.
 */
export function tlsContext(contents: TlsContents): SecureContextOptions {
  const problems: TlsProblem[] = [];
  const attempt = <T>(part: TlsPart, make: (bytes: Buffer) => T, problem: (error: unknown) => string) => {
    const found = contents[part];
    if (found === null) return null;
    if (typeof found !== "string") {
      try {
        return make(found);
      } catch (error) {
        problems.push({ part, text: problem(error) });
      }
    } else {
      problems.push({ part, text: found });
    }
    return null;
  };
  const noCertificate = () => "there is no certificate in PEM in it";
  const certificates = attempt("certificate", readCertificates, noCertificate);
  const key = attempt("key", createPrivateKey, keyProblem);
  attempt("clientRoots", readCertificates, noCertificate);
  if (certificates !== null && key !== null && !certificates[0].checkPrivateKey(key)) {
    problems.push({ part: "key", text: "it is not the key of the certificate" });
  }
  if (problems.length > 0) throw new TlsError(problems);

  const { certificate, clientRoots } = contents;
  const context = {
    cert: certificate as Buffer,
    key: contents.key as Buffer,
    ...(clientRoots !== null && { ca: clientRoots }),
  };
  try {
    createSecureContext(context);
  } catch (error) {
    throw new TlsError([{ part: "certificate", text: `TLS refuses it: ${(error as Error).message}` }]);
  }
  return context;
}

/** Every certificate in `pem`. Throws if there is none, or one that is not whole. */
export function readCertificates(pem: Buffer): [X509Certificate, ...X509Certificate[]] {
  const blocks = pem.toString("latin1").split(/^(?=-----BEGIN [A-Z0-9 ]*CERTIFICATE-----)/m);
  const [first, ...others] = blocks
    .filter((block) => block.startsWith("-----BEGIN"))
    .map((block) => new X509Certificate(block));
  if (first === undefined) throw new TypeError("no certificate");
  return [first, ...others];
}

function keyProblem(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED" || code === "ERR_MISSING_PASSPHRASE"
    ? "the key is encrypted; store it without a passphrase, readable by this user only"
    : "there is no private key in PEM in it";
}
