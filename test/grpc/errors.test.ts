import fc from "fast-check";
import { expect, test } from "vitest";
import { internalErrorText, RegistryError } from "../../src/core/errors.js";
import { isFault, statusDetails, statusOfError } from "../../src/grpc/errors.js";
import { addressOf, createCaller, createTestFace, startServer } from "./harness.js";

test.each([
  ["percent signs", "100% of %41 and %zz"],
  ["line ends", "a\nb\r\nc"],
  ["an emoji", "\u{1f600} smiles"],
  ["reserved characters", "?&=+$,#;/:@ ~'\"<>|\\^`{}"],
  ["a name of 1,024 bytes", `region '${"入".repeat(341)}x' already in manager`],
  ["two names of 1,024 bytes", `${"é".repeat(512)} and ${"x".repeat(1024)}`],
])("a text with %s reaches the client unchanged", async (_what, text) => {
  const face = createTestFace();
  face.registry.register = () => Promise.reject(new RegistryError("FAILED_PRECONDITION", text));
  const call = createCaller(addressOf(await startServer(face)));
  expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toMatchObject({
    code: "FAILED_PRECONDITION",
    text,
  });
});

test("a text with half a surrogate pair is answered with the half replaced", async () => {
  const face = createTestFace();
  face.registry.register = () => Promise.reject(new RegistryError("INVALID_ARGUMENT", "a\ud800b"));
  const call = createCaller(addressOf(await startServer(face)));
  expect(await call("CudaSharedMemoryRegister", face.goodRegister)).toMatchObject({
    code: "INVALID_ARGUMENT",
    text: "a\ufffdb",
  });
});

test("a text too long for a header loses its middle, between characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), (unit) => {
      const text = unit.repeat(4000);
      const told = statusDetails(text);
      expect(Buffer.byteLength(told)).toBeLessThanOrEqual(2560 + 16);
      const [head, tail] = told.split(" ... ") as [string, string];
      expect(text.startsWith(head)).toBe(true);
      expect(text.endsWith(tail)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test("every code of the core has its namesake's number", () => {
  const numbers = {
    CANCELLED: 1,
    INVALID_ARGUMENT: 3,
    DEADLINE_EXCEEDED: 4,
    NOT_FOUND: 5,
    ALREADY_EXISTS: 6,
    PERMISSION_DENIED: 7,
    RESOURCE_EXHAUSTED: 8,
    FAILED_PRECONDITION: 9,
    OUT_OF_RANGE: 11,
    UNIMPLEMENTED: 12,
    INTERNAL: 13,
    UNAVAILABLE: 14,
    UNAUTHENTICATED: 16,
  } as const;
  for (const [code, number] of Object.entries(numbers)) {
    const error = new RegistryError(code as keyof typeof numbers, "why");
    expect(statusOfError(error)).toEqual({ code: number, details: "why" });
    expect(isFault(error)).toBe(code === "INTERNAL");
  }
});

test("an unknown error is told as a fixed text and is a fault", () => {
  for (const error of [new Error("/secret/path"), "text", undefined, { code: 5, details: "leak" }]) {
    expect(statusOfError(error)).toEqual({ code: 13, details: internalErrorText });
    expect(isFault(error)).toBe(true);
  }
});
