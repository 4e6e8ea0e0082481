/** What a client learns of a call. */
export type Outcome =
  | { readonly kind: "done"; readonly generation: number | null }
  | { readonly kind: "refused"; readonly code: string; readonly text: string }
  /** Nobody can tell whether it was carried out. */
  | { readonly kind: "lost"; readonly why: string };

/** Which region a call is about, and by whom. */
export interface Caller {
  readonly token: string | null;
  readonly session: { readonly secret: string } | null;
}
