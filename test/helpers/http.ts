import { told } from "./secrets.js";

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** One request of a plain client. */
export async function request(method: string, url: string, body?: string | Uint8Array): Promise<HttpAnswer> {
  const response = await fetch(url, { method, ...(body !== undefined && { body }) });
  const text = await response.text();
  told(text);
  told([...response.headers]);
  return { status: response.status, text };
}

/** The path of a region's operation. */
export function region(name: string, operation: "register" | "unregister" | "status"): string {
  return `/v2/cudasharedmemory/region/${encodeURIComponent(name)}/${operation}`;
}
