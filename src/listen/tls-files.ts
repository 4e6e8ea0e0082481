import { readFile } from "node:fs/promises";
import type { SecureContextOptions } from "node:tls";
import type { ServerTls } from "./tls.js";
import { readCertificates, type TlsContents, type TlsPart, tlsContext } from "./tls-material.js";

/** Files in PEM. */
export interface TlsPaths {
  /** The service's certificate, followed by those between it and the root. */
  readonly certificate: string;
  readonly key: string;
  /** The certificates that sign clients'; null asks clients for none. */
  readonly clientRoots: string | null;
}

/** Certificates and a key in files that may be replaced while the service runs. */
export class TlsFiles implements ServerTls {
  readonly #paths: TlsPaths;
  readonly #listeners = new Set<() => void>();
  /** Is told why a client did not get through. */
  onRefused: (why: string) => void = () => {};
  /** As last read. */
  #contents: TlsContents;
  #context: SecureContextOptions;

  private constructor(paths: TlsPaths, contents: TlsContents) {
    this.#paths = paths;
    this.#contents = contents;
    this.#context = tlsContext(contents);
  }

  /** Reads the files. Rejects with TlsError if they cannot be used. */
  static async open(paths: TlsPaths): Promise<TlsFiles> {
    return new TlsFiles(paths, await read(paths));
  }

  get context(): SecureContextOptions {
    return this.#context;
  }

  get wantsClientCertificate(): boolean {
    return this.#paths.clientRoots !== null;
  }

  /** When the certificate in use ends, as it says itself. */
  get validTo(): string {
    return readCertificates(this.#context.cert as Buffer)[0].validTo;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  refused(why: string): void {
    this.onRefused(why);
  }

  /**
   * Reads the files again; true if something new was taken over. What cannot be used leaves everything as it
   * was, and rejects with TlsError the first time it is seen.
   */
  async look(): Promise<boolean> {
    const contents = await read(this.#paths);
    if (parts.every((part) => same(contents[part], this.#contents[part]))) return false;
    this.#contents = contents;
    this.#context = tlsContext(contents);
    for (const listener of this.#listeners) listener();
    return true;
  }
}

const parts: readonly TlsPart[] = ["certificate", "key", "clientRoots"];

async function read(paths: TlsPaths): Promise<TlsContents> {
  const [certificate, key, clientRoots] = await Promise.all(parts.map((part) => readPart(paths[part])));
  return { certificate: certificate ?? null, key: key ?? null, clientRoots: clientRoots ?? null };
}

async function readPart(path: string | null): Promise<Buffer | string | null> {
  if (path === null) return null;
  try {
    return await readFile(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return `there is no file ${path}`;
    if (code === "EACCES") return `this user may not read ${path}`;
    return message;
  }
}

function same(a: Buffer | string | null, b: Buffer | string | null): boolean {
  return a instanceof Buffer && b instanceof Buffer ? a.equals(b) : a === b;
}
