import { apiCategories } from "../core/api-category.js";
import type { Restriction } from "../core/restrictions.js";
import type { OptionKind } from "./option.js";

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// What metadata takes; a key that ends in -bin would be read as base64.
const metadataKey = /^(?!.*-bin$)[0-9A-Za-z_.-]+$/i;
const visible = /^[\x21-\x7e]+$/;

/** `<categories>:<key>=<value>` as Triton has it, the key being the name of an HTTP header. */
export const httpRestriction = restriction(headerName);

/** The same, the key being the end of a gRPC metadata key. */
export const grpcRestriction = restriction(metadataKey);

function restriction(validKey: RegExp): Omit<OptionKind<Restriction>, "isSwitch"> {
  return {
    placeholder: "CATEGORIES:KEY=VALUE",
    expected: `categories with commas in between, a colon, a header's name, an equals sign and a value without blanks; categories are ${apiCategories.join(", ")}`,
    isSecret: true,
    parse(text) {
      const [, listed, key, value] = /^([^:=]+):([^=]+)=(.+)$/.exec(text) ?? [];
      if (listed === undefined || key === undefined || value === undefined) return null;
      const names = listed.split(",");
      const categories = apiCategories.filter((category) => names.includes(category));
      if (categories.length !== names.length || !validKey.test(key) || !visible.test(value)) return null;
      return { categories, key, value };
    },
  };
}

/** An origin exactly as browsers send it. */
export const origin: Omit<OptionKind<string>, "isSwitch"> = {
  placeholder: "ORIGIN",
  expected: "an origin as browsers send it, such as https://example.com or http://localhost:3000",
  parse(text) {
    if (!URL.canParse(text)) return null;
    const url = new URL(text);
    return (url.protocol === "http:" || url.protocol === "https:") && url.origin === text ? text : null;
  },
};

/** A name that a Host header may have. */
export const hostName: Omit<OptionKind<string>, "isSwitch"> = {
  placeholder: "HOST",
  expected: "a host name, with a port or without",
  parse: (text) => (/^[\w.-]+(:\d{1,5})?$/.test(text) ? text : null),
};
