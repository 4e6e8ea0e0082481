import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/helpers/no-secrets.ts"],
    pool: "forks",
    // For what hangs, not for what is slow: tests that measure time say so themselves.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // A failing test is a fact to explain, never something to try again.
    retry: 0,
    allowOnly: process.env.CI === undefined,
  },
});
