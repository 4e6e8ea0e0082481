import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import { type Principal, Principals } from "../../src/core/principals.js";

const hash = (token: string) => createHash("sha256").update(token).digest("hex");

function parse(text: string): Principals {
  const parsed = Principals.parse(text);
  if (parsed instanceof Principals) return parsed;
  throw new Error(parsed.join("\n"));
}

function principal(principals: Principals, authorization: string | undefined): Principal {
  return principals.authenticate({
    header: (name) => (name === "authorization" ? authorization : undefined),
  });
}

function caller(principals: Principals, authorization?: string): string {
  try {
    return principal(principals, authorization).name;
  } catch (error) {
    if (error instanceof RegistryError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

const missing = "UNAUTHENTICATED: this service wants a token; send it as 'authorization: Bearer <token>'";
const unknown =
  "UNAUTHENTICATED: the token is not one of this service's; ask whoever runs it for one that is in its --token-file";

test("a token is known by its hash and names its principal", () => {
  const principals = parse(
    `# who\n\n  alice: ${hash("a-token")}  \r\nbob:${hash("b-token").toUpperCase()}\n`,
  );
  expect(caller(principals, "Bearer a-token")).toBe("alice");
  expect(caller(principals, "bearer  b-token")).toBe("bob");
});

test("one name may have two tokens, as while one is replaced by the other", () => {
  const principals = parse(`alice: ${hash("old")}\nalice: ${hash("new")}`);
  expect([caller(principals, "Bearer old"), caller(principals, "Bearer new")]).toEqual(["alice", "alice"]);
});

test("a token is an administrator's if its own line says so, whatever others of the name say", () => {
  const principals = parse(`ops: ${hash("plain")}\nops: ${hash("mighty")}  admin \nalice: ${hash("hers")}`);
  expect(principal(principals, "Bearer plain")).toEqual({ name: "ops", isAdmin: false });
  expect(principal(principals, "Bearer mighty")).toEqual({ name: "ops", isAdmin: true });
  expect(principal(principals, "Bearer hers")).toEqual({ name: "alice", isAdmin: false });
});

test("a line that ends with anything else than admin is a problem", () => {
  for (const end of ["Admin", "administrator", "admin admin", ": admin", "user"]) {
    expect(Principals.parse(`ops: ${hash("x")} ${end}`)).toEqual([
      expect.stringMatching(/^line 1: expected/),
    ]);
  }
  expect(Principals.parse(`ops: ${hash("x")}admin`)).toEqual([expect.stringMatching(/^line 1: expected/)]);
});

test("one token that is an administrator's on one line and not on another is a problem", () => {
  expect(Principals.parse(`ops: ${hash("x")} admin\nops: ${hash("x").toUpperCase()}`)).toEqual([
    "line 2: the same token is on another line, and admin is on one of the two only",
  ]);
});

test.each([
  undefined,
  "",
  "Basic YTpi",
  "a-token",
  "Bearer",
  "Bearer ",
  "Bearer a b",
  "Bearer a-token, Bearer a-token",
  ", Bearer a-token",
  "Bearer, a-token",
])("the header %j holds no token", (header) => {
  expect(caller(parse(`alice: ${hash("a-token")}`), header)).toBe(missing);
});

test.each(["a-toke", "a-tokenn", "A-TOKEN", "a-token,", hash("a-token")])(
  "the token %s is nobody's",
  (token) => {
    expect(caller(parse(`alice: ${hash("a-token")}`), `Bearer ${token}`)).toBe(unknown);
  },
);

test("every problem is told by its line, and nothing of the line is", () => {
  const secret = "s3cret-token";
  const text = [
    `alice ${secret}`,
    `alice: ${secret}`,
    `: ${hash("x")}`,
    `anonymous: ${hash("y")}`,
    `alice: ${hash("z")}`,
    `bob: ${hash("z")}`,
  ].join("\n");
  const problems = Principals.parse(text);
  expect(problems).toEqual([
    "line 1: expected a name, a colon and the 64 hex digits of a token's SHA-256, then nothing or admin",
    "line 2: expected a name, a colon and the 64 hex digits of a token's SHA-256, then nothing or admin",
    "line 3: expected a name, a colon and the 64 hex digits of a token's SHA-256, then nothing or admin",
    "line 4: anonymous is what callers without a token are called; choose another name",
    "line 6: another name has the same token",
  ]);
});

test("a file that names nobody is a problem", () => {
  expect(Principals.parse("\n# nobody yet\n")).toEqual(["it names nobody, so nobody could call"]);
});
