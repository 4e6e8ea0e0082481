import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Part, resolve, served } from "./described-answer.js";

/** The contract that the service was asked to keep, as it was given. */
const contract: Part = parse(
  readFileSync(new URL("../fixtures/openapi/cuda-shared-memory.yaml", import.meta.url), "utf8"),
);

/** Everything that `given` promises and `ours` does not, one line each. */
function broken(given: Part, ours: Part): string[] {
  const problems: string[] = [];

  function same(what: string, a: unknown, b: unknown): void {
    if (a !== undefined && a !== b) problems.push(`${what}: ${a}, not ${b}`);
  }

  function schema(where: string, givenPart: Part, ourPart: Part): void {
    const a = resolve(given, givenPart);
    const b = resolve(ours, ourPart);
    if (b === undefined) {
      problems.push(`${where}: missing`);
      return;
    }
    same(`${where} type`, a.type, b.type);
    same(`${where} format`, a.format, b.format);
    for (const name of a.required ?? []) {
      if (!b.required?.includes(name)) problems.push(`${where}: ${name} is not required`);
    }
    for (const [name, property] of Object.entries(a.properties ?? {})) {
      schema(`${where}.${name}`, property, b.properties?.[name]);
    }
    if (a.items !== undefined) schema(`${where}[]`, a.items, b.items);
  }

  function content(where: string, a: Part, b: Part): void {
    for (const [type, media] of Object.entries<Part>(a ?? {})) {
      schema(`${where} ${type}`, media.schema, b?.[type]?.schema);
    }
  }

  function parameter(where: string, a: Part, b: Part): void {
    if (b === undefined) {
      problems.push(`${where}: missing`);
      return;
    }
    same(`${where} in`, a.in, b.in);
    same(`${where} required`, a.required, b.required);
    schema(where, a.schema, b.schema);
  }

  for (const [path, item] of Object.entries<Part>(given.paths)) {
    for (const [method, a] of Object.entries<Part>(item)) {
      const where = `${method} ${path}`;
      const b = ours.paths[path]?.[method];
      if (b === undefined) {
        problems.push(`${where}: missing`);
        continue;
      }
      same(`${where} operationId`, a.operationId, b.operationId);
      for (const tag of a.tags) if (!b.tags.includes(tag)) problems.push(`${where}: tag ${tag}`);
      const all = (b.parameters ?? []).map((part: Part) => resolve(ours, part));
      for (const part of a.parameters ?? []) {
        const wanted = resolve(given, part);
        parameter(
          `${where} ${wanted.name}`,
          wanted,
          all.find(({ name }: Part) => name === wanted.name),
        );
      }
      same(`${where} body required`, a.requestBody?.required, b.requestBody?.required);
      content(`${where} body`, a.requestBody?.content, b.requestBody?.content);
      for (const [status, response] of Object.entries<Part>(a.responses)) {
        const described = resolve(ours, b.responses[status]);
        if (described === undefined) problems.push(`${where} ${status}: missing`);
        else content(`${where} ${status}`, response.content, described.content);
      }
    }
  }
  for (const [name, part] of Object.entries(given.components.schemas)) {
    schema(name, part, ours.components.schemas[name]);
  }
  for (const [name, part] of Object.entries(given.components.parameters)) {
    parameter(name, part, ours.components.parameters[name]);
  }
  return problems;
}

const register = "/v2/cudasharedmemory/region/{region_name}/register";

describe("the contract", () => {
  it("holds for the document that is served", () => {
    expect(Object.keys(contract.paths)).toHaveLength(4);
    expect(broken(contract, served)).toEqual([]);
  });

  it("demands no query, header or body that a client of the contract does not send", () => {
    for (const [path, item] of Object.entries<Part>(contract.paths)) {
      for (const [method, { parameters = [], requestBody }] of Object.entries<Part>(item)) {
        const ours = served.paths[path][method];
        const needed = (ours.parameters ?? []).map((part: Part) => resolve(served, part));
        expect(needed.filter(({ required }: Part) => required)).toHaveLength(parameters.length);
        expect(ours.requestBody?.required).toBe(requestBody?.required);
      }
    }
    const body = served.components.schemas.CudaSharedMemoryRegistration;
    expect(body.required.toSorted()).toEqual(["byte_size", "device_id", "raw_handle"]);
  });

  it.each<[string, (ours: Part) => void]>([
    ["a path", (ours) => delete ours.paths["/v2/cudasharedmemory/unregister"]],
    ["a method", (ours) => delete ours.paths[register].post],
    [
      "an operationId",
      (ours) => {
        ours.paths[register].post.operationId = "x";
      },
    ],
    [
      "a tag",
      (ours) => {
        ours.paths[register].post.tags = [];
      },
    ],
    [
      "a parameter",
      (ours) => {
        ours.paths[register].post.parameters = [];
      },
    ],
    [
      "a parameter's type",
      (ours) => {
        ours.components.parameters.regionName.schema.type = "integer";
      },
    ],
    ["a body", (ours) => delete ours.paths[register].post.requestBody],
    [
      "a content type",
      (ours) => {
        ours.paths[register].post.requestBody.content = {};
      },
    ],
    ["a status", (ours) => delete ours.paths[register].post.responses["400"]],
    ["what an error looks like", (ours) => delete ours.components.responses.BadRequest.content],
    ["a property", (ours) => delete ours.components.schemas.CudaSharedMemoryRegion.properties.name],
    [
      "a property's type",
      (ours) => {
        ours.components.schemas.ErrorResponse.properties.error.type = "object";
      },
    ],
    [
      "a format",
      (ours) =>
        delete ours.components.schemas.CudaSharedMemoryRegistration.properties.raw_handle.properties.b64
          .format,
    ],
    [
      "a required member",
      (ours) => {
        ours.components.schemas.CudaSharedMemoryRegistration.required = [];
      },
    ],
    [
      "a schema",
      (ours) => {
        ours.components.schemas.ErrorResponse = undefined;
      },
    ],
  ])("is found broken without %s", (_, change) => {
    const changed = structuredClone(served);
    change(changed);
    expect(() => {
      const problems = broken(contract, changed);
      if (problems.length > 0) throw new Error(problems.join("\n"));
    }).toThrow();
  });
});
