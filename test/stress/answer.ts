import type { Exporter } from "../../src/core/exporter.js";

/** How a call ended for its client. */
export interface Answer {
  /** OK, an error's code, or LOST where the client went away or the connection broke before an answer. */
  readonly code: string;
  /** The error's text. */
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What a client does to its own call, that many milliseconds after it was made. */
export type Disturbance =
  | { readonly kind: "cancel"; readonly afterMs: number }
  | { readonly kind: "deadline"; readonly afterMs: number }
  /** Its connection breaks, and with it the calls of all who share that. */
  | { readonly kind: "cut"; readonly afterMs: number };

/** What is asked of a service, in the words of neither face. */
export type Request =
  | { readonly op: "registerAsTriton"; readonly name: string; readonly memory: Memory }
  | {
      readonly op: "register";
      readonly name: string;
      readonly memory: Memory;
      readonly options: RegisterOptions;
    }
  | { readonly op: "unregisterAsTriton"; readonly name: string }
  | { readonly op: "unregisterAll" }
  | { readonly op: "renew"; readonly name: string; readonly leaseSeconds: number }
  | { readonly op: "release"; readonly name: string; readonly waitMs: number; readonly force: boolean }
  | { readonly op: "statusAll" }
  | { readonly op: "status"; readonly name: string }
  | { readonly op: "get"; readonly name: string; readonly waitMs: number }
  | { readonly op: "list" }
  | { readonly op: "devices" }
  | { readonly op: "server" }
  | { readonly op: "read"; readonly name: string }
  | { readonly op: "write"; readonly name: string; readonly bytes: Uint8Array }
  | { readonly op: "checksum"; readonly name: string }
  /** Reads changes until it is disturbed. */
  | { readonly op: "watch" };

/** Exported memory. */
export interface Memory {
  readonly handle: Buffer;
  readonly deviceId: number;
  readonly byteSize: number;
}

export interface RegisterOptions {
  readonly offset: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly leaseSeconds: number | null;
  readonly exporter: Exporter | null;
  /** The generation to take the place of. */
  readonly replaces: number | null;
  readonly dryRun: boolean;
}

/** A client of one face that makes one call at a time. */
export interface FaceClient extends Disposable {
  /** `session` is the secret of the one that the call belongs to. Rejects if there is no answer, and no reason for that. */
  call(request: Request, session: string | null, disturbance: Disturbance | null): Promise<Answer>;
}

export const lost: Answer = { code: "LOST", text: "", body: {} };
