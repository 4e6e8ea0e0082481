import { stringify } from "lossless-json";
import { openApiDocument } from "../../src/http/openapi.js";
import { splitTarget } from "../../src/http/request-target.js";

/** A part of an OpenAPI document. */
// biome-ignore lint/suspicious/noExplicitAny: a document has as many shapes as its language allows.
export type Part = any;

/** The document as a client reads it, which rounds what JavaScript cannot hold. */
export const served: Part = JSON.parse(stringify(openApiDocument("1.2.3")) ?? "");

/** What a `$ref` of `document` stands for; anything else is itself. */
export function resolve(document: Part, part: Part): Part {
  if (typeof part?.$ref !== "string") return part;
  const keys = part.$ref.replace(/^#\//, "").split("/");
  const found = keys.reduce((at: Part, key: string) => at?.[key], document);
  if (found === undefined) throw new Error(`nothing is at ${part.$ref}`);
  return found;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** What the document does not say of this answer, in words; null if it says all of it. */
export function undescribed(method: string, target: string, answer: Answer): string | null {
  const { path } = splitTarget(target);
  const item = Object.entries(served.paths).find(([template]) => matches(template, path));
  const operation = (item?.[1] as Part)?.[method === "HEAD" ? "get" : method.toLowerCase()];
  const expected = operation?.responses[answer.status];
  // No operation: a browser that asks in advance whether a page may call.
  if (method === "OPTIONS" && answer.status === 200) return answer.text === "" ? null : "a body";
  const response =
    operation === undefined && [403, 404, 405].includes(answer.status)
      ? served.components.responses.NotFound
      : resolve(served, expected);
  const where = `${method} ${target.slice(0, 80)} ${answer.status}`;
  if (response === undefined) return `${where}: no such status`;
  for (const [name, header] of Object.entries<Part>(response.headers)) {
    const value = answer.headers[name];
    const { required, schema } = resolve(served, header);
    if (value === undefined ? required : breaks(schema, value)) return `${where}: header ${name}`;
  }
  if (method === "HEAD") return null;
  if (response.content === undefined) return answer.text === "" ? null : `${where}: a body`;
  const content = response.content[String(answer.headers["content-type"])];
  if (content === undefined) return `${where}: content type`;
  if (answer.headers["content-type"] !== "application/json") return null;
  return breaks(content.schema, JSON.parse(answer.text)) ? `${where}: ${answer.text.slice(0, 200)}` : null;
}

/** Whether the data of an event is as the document says that it is. */
export function isDescribedEvent(event: string, data: unknown): boolean {
  const schema = served.components.schemas[`${event[0]?.toUpperCase()}${event.slice(1)}Event`];
  return schema !== undefined && !breaks(schema, data);
}

function matches(template: string, path: string): boolean {
  return new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`).test(path);
}

/** Whether `value` breaks a schema, by the few keywords that answers are described with. */
function breaks(given: Part, value: Part): boolean {
  const schema = resolve(served, given);
  if (schema.anyOf !== undefined) return schema.anyOf.every((one: Part) => breaks(one, value));
  if (schema.enum !== undefined && !schema.enum.includes(value)) return true;
  return [schema.type].flat().every((type: string) => breaksAs(type, schema, value));
}

/** The same, were it of this type alone. */
function breaksAs(type: string, schema: Part, value: Part): boolean {
  switch (type) {
    case "null":
      return value !== null;
    case "boolean":
      return typeof value !== "boolean";
    case "string":
      return (
        typeof value !== "string" ||
        value.length < (schema.minLength ?? 0) ||
        (schema.format === "date-time" && new Date(value).toJSON() !== value) ||
        (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
      );
    case "integer":
      return !Number.isInteger(value) || value < schema.minimum || value > schema.maximum;
    case "number":
      return typeof value !== "number" || value < schema.minimum || value > schema.maximum;
    case "array":
      return !Array.isArray(value) || value.some((item) => breaks(schema.items ?? {}, item));
    case "object":
      return (
        typeof value !== "object" ||
        value === null ||
        Array.isArray(value) ||
        (schema.required ?? []).some((name: string) => !Object.hasOwn(value, name)) ||
        Object.entries(value).some(([name, member]) => {
          const property = schema.properties?.[name] ?? schema.additionalProperties;
          return typeof property === "object" && breaks(property, member);
        })
      );
    default:
      throw new Error(`a schema of type ${type} is not understood here`);
  }
}
