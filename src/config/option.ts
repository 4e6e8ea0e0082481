import { isIP } from "node:net";

/** Node's timers take at most this many milliseconds and fire at once beyond it. */
export const maxTimerMs = 2 ** 31 - 1;

/** How the text of an option becomes a value. */
export interface OptionKind<T> {
  /** Stands for the value in help, such as `PORT`. */
  readonly placeholder: string;
  /** Completes the sentence "expected ...". */
  readonly expected: string;
  /** A switch may be given without a value and then means `true`. */
  readonly isSwitch: boolean;
  /** Told twice, the second adds to the first; else it replaces it. */
  readonly isList?: true;
  /** What was told must not be repeated in a message. */
  readonly isSecret?: true;
  /** null if the text is no such value. */
  parse(text: string): T | null;
}

/** One row of a command's table of options: parsing, help and the README follow from it. */
export interface Option<T> {
  /** Without the dashes. */
  readonly flag: string;
  readonly kind: OptionKind<T>;
  readonly default: T;
  /** The heading it stands under in help. */
  readonly group: string;
  readonly help: string;
  /** Accepted for scripts written for Triton; the text says why it does nothing here. */
  readonly withoutEffect?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: a table holds options of every type, and Option is invariant in it.
export type OptionTable = Readonly<Record<string, Option<any>>>;

/** The values a table of options yields. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Key in keyof Table]: Table[Key] extends Option<infer Value> ? Value : never;
};

/** The environment variable of a flag: `http-port` is `CUDASHM_HTTP_PORT`. */
export function environmentName(flag: string): string {
  return `CUDASHM_${flag.replaceAll("-", "_").toUpperCase()}`;
}

/** `true`, `false`, `1` or `0` in any case, as Triton reads them. */
export const boolean: OptionKind<boolean> = {
  placeholder: "true|false",
  expected: "true, false, 1 or 0",
  isSwitch: true,
  parse(text) {
    const lower = text.toLowerCase();
    if (lower === "true" || lower === "1") return true;
    if (lower === "false" || lower === "0") return false;
    return null;
  },
};

/** A whole decimal number within [min, max]; both must be safe integers. */
export function integer(min: number, max: number, placeholder = "NUMBER"): OptionKind<number> {
  return {
    placeholder,
    expected: `a whole number from ${min} to ${max}`,
    isSwitch: false,
    parse(text) {
      if (!/^\d{1,16}$/.test(text)) return null;
      const value = Number(text);
      return value >= min && value <= max ? value : null;
    },
  };
}

/** A TCP port; 0 lets the system choose. */
export const port: OptionKind<number> = { ...integer(0, 65_535, "PORT"), expected: "a port from 0 to 65535" };

/** An address to listen on, as a socket takes it. */
export const hostAddress: OptionKind<string> = {
  placeholder: "ADDRESS",
  expected: "an IP address or a host name, with neither brackets nor port",
  isSwitch: false,
  parse: (text) => (isIP(text) !== 0 || /^[\w.-]+$/.test(text) ? text : null),
};

/** Any text but none. */
export function text(placeholder: string): OptionKind<string> {
  return {
    placeholder,
    expected: "some text",
    isSwitch: false,
    parse: (value) => (value === "" ? null : value),
  };
}

/** One of a few words. */
export function oneOf<const Word extends string>(...words: readonly Word[]): OptionKind<Word> {
  return {
    placeholder: words.join("|"),
    expected: `one of ${words.join(", ")}`,
    isSwitch: false,
    parse: (value) => words.find((word) => word === value) ?? null,
  };
}

/** An option that may be left out altogether. */
export function optional<T>(kind: OptionKind<T>): OptionKind<T | null> {
  return kind;
}
