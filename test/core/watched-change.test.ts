import { expect, test } from "vitest";
import { context, createHarness, request } from "../helpers/registry-harness.js";

// A call holds its message, with the handle, and its headers, with the token: thousands of changes are kept.
test("what is kept of a change has nothing of the call that made it", async () => {
  const { driver, registry } = createHarness();
  const events = registry.watch({ fromRevision: 1n }, context)[Symbol.asyncIterator]();
  await events.next();
  await registry.register(request("r", driver.allocate(4096).handle), context);
  const { value } = await events.next();
  expect(value).toEqual({
    kind: "change",
    change: { kind: "registered", reason: "requested", revision: 1n, region: registry.status("r") },
  });
  await events.return?.();
});
