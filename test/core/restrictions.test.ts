import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { type Restriction, Restrictions } from "../../src/core/restrictions.js";

const rules: Restriction[] = [
  { categories: ["shared-memory", "metadata"], key: "Admin-Key", value: "s3cret" },
  { categories: ["health"], key: "probe", value: "p" },
];

function check(
  restrictions: Restrictions,
  category: Parameters<Restrictions["check"]>[0],
  headers: Record<string, string> = {},
): string {
  try {
    restrictions.check(category, { header: (name) => headers[name] });
    return "OK";
  } catch (error) {
    if (error instanceof RegistryError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

test("over HTTP, a restricted category needs its header, and a free one needs none", () => {
  const restrictions = Restrictions.ofHttp(rules);
  const refused = "PERMISSION_DENIED: This API is restricted, expecting header 'Admin-Key'";
  expect(check(restrictions, "shared-memory")).toBe(refused);
  expect(check(restrictions, "metadata", { "admin-key": "S3CRET" })).toBe(refused);
  expect(check(restrictions, "metadata", { "admin-key": "" })).toBe(refused);
  expect(check(restrictions, "metadata", { "admin-key": "s3cret" })).toBe("OK");
  expect(check(restrictions, "health", { "admin-key": "s3cret" })).toBe(
    "PERMISSION_DENIED: This API is restricted, expecting header 'probe'",
  );
  expect(check(restrictions, "inference")).toBe("OK");
});

test("over gRPC, the metadata key has Triton's prefix and is in lower case", () => {
  const restrictions = Restrictions.ofGrpc(rules);
  expect(check(restrictions, "shared-memory", { "admin-key": "s3cret" })).toBe(
    "UNAVAILABLE: This protocol is restricted, expecting header 'triton-grpc-protocol-admin-key'",
  );
  expect(check(restrictions, "shared-memory", { "triton-grpc-protocol-admin-key": "s3cret" })).toBe("OK");
});
