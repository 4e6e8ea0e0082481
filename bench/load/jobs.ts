import type { Question } from "../processes/answer-questions.js";
import type { Timing } from "./lanes.js";

/** What the load process is asked to do: lanes side by side, each repeating its steps until the time is over. */
export interface LoadJob<Step> extends Question {
  readonly port: number;
  readonly lanes: readonly (readonly Step[])[];
  readonly seconds: number;
  /** Whose CPU time is told. */
  readonly serverPid: number;
}

export interface HttpStep {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  /** A body of so many bytes instead. */
  readonly bodyBytes?: number;
  /** False for a request that is sent and does not count. */
  readonly counts?: boolean;
}

export interface GrpcStep {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Encoded messages in base64, each sent `times` times: one of one for a unary call. */
  readonly messages: readonly { readonly b64: string; readonly times: number }[];
  readonly isStream?: boolean;
  readonly counts?: boolean;
}

/** Registers `count` regions from `region-<first>` on over HTTP, on the bodies in turn. */
export interface FillJob extends Question {
  readonly port: number;
  readonly first: number;
  readonly count: number;
  readonly bodies: readonly string[];
}

export interface LoadResult extends Timing {
  readonly serverCpuMicros: number | null;
  readonly loadCpuMicros: number;
}
