import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A certificate and its key, in files. */
export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** A folder of certificates that the openssl command makes. */
export class CertificateFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<CertificateFolder> {
    return new CertificateFolder(await mkdtemp(join(tmpdir(), "cudashm-tls-")));
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** A certificate that signs others. */
  async makeRoot(name: string): Promise<Identity> {
    const root = this.#identity(name);
    const extensions = ["-addext", "basicConstraints=critical,CA:TRUE"];
    await this.#openssl("req", "-x509", ...this.#newKey(root), "-subj", `/CN=${name}`, ...extensions);
    return root;
  }

  /** A certificate signed by `root`, good for 127.0.0.1 and localhost, and for `usage` alone if one is given. */
  async make(name: string, root: Identity, usage?: "serverAuth"): Promise<Identity> {
    const made = this.#identity(name);
    await this.#openssl(
      ...["req", "-x509", "-CA", root.certificate, "-CAkey", root.key, ...this.#newKey(made)],
      ...["-subj", `/CN=${name}`, "-addext", "basicConstraints=critical,CA:FALSE"],
      ...["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
      ...(usage === undefined ? [] : ["-addext", `extendedKeyUsage=${usage}`]),
    );
    return made;
  }

  /** The same under other names. */
  async copy(from: Identity, name: string): Promise<Identity> {
    const to = this.#identity(name);
    await Promise.all([cp(from.certificate, to.certificate), cp(from.key, to.key)]);
    return to;
  }

  read(identity: Identity): Promise<Buffer> {
    return readFile(identity.certificate);
  }

  readKey(identity: Identity): Promise<Buffer> {
    return readFile(identity.key);
  }

  /** A file with the key of `identity` under a passphrase. */
  async encryptKey(identity: Identity): Promise<string> {
    const encrypted = `${identity.key}.encrypted`;
    await this.#openssl("pkcs8", "-topk8", "-in", identity.key, "-out", encrypted, "-passout", "pass:secret");
    return encrypted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true });
  }

  #identity(name: string): Identity {
    return { certificate: this.file(`${name}.crt`), key: this.file(`${name}.key`) };
  }

  #newKey({ certificate, key }: Identity): string[] {
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    return [...curve, "-keyout", key, "-out", certificate, "-days", "2"];
  }

  async #openssl(...args: readonly string[]): Promise<void> {
    await run("openssl", args);
  }
}
