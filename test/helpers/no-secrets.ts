import { afterAll, expect } from "vitest";
import { leaks } from "./secrets.js";

// Runs around every test file: whatever its services and faces answered or logged, no secret was in it.
afterAll(() => {
  expect(leaks()).toEqual([]);
});
