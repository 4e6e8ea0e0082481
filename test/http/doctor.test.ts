import { expect, test } from "vitest";
import { RegistryError } from "../../src/core/errors.js";
import type { FaceContext, Fault } from "../../src/core/face-context.js";
import { RegionRegistry } from "../../src/core/registry.js";
import { createHttpApp } from "../../src/http/app.js";
import { createDeferred } from "../helpers/deferred.js";
import { FakeDriver } from "../helpers/fake-driver.js";
import { undescribed } from "./described-answer.js";

const report = '{"schema":1,"version":"1.2.3","status":"OK","findings":[]}';

function face(diagnose?: FaceContext["diagnose"]) {
  const shutdown = new AbortController();
  const faults: Fault[] = [];
  const app = createHttpApp({
    registry: new RegionRegistry({ driver: new FakeDriver() }),
    info: { name: "cudashm", version: "1.2.3", extensions: [], instanceId: "test", epoch: 1n },
    readiness: () => "ready",
    cudaDriver: () => "emulated",
    allowClientShm: true,
    diagnose,
    shutdown: shutdown.signal,
    nextRequestId: () => "id-1",
    reportFault: (fault) => faults.push(fault),
  });
  const get = async (init: RequestInit = {}) => {
    const answer = await app.request("/v1/doctor", init);
    const { status } = answer;
    const text = await answer.text();
    const headers = Object.fromEntries(answer.headers);
    // Nobody is left to read 499, so the document has none.
    if (status !== 499) expect(undescribed("GET", "/v1/doctor", { status, headers, text })).toBeNull();
    return { status, text, code: headers["x-error-code"] };
  };
  return { get, shutdown, faults };
}

test("the report is answered as it was made, and made anew for each request", async () => {
  let made = 0;
  const { get } = face(async () => {
    made++;
    return report;
  });
  expect(await get()).toMatchObject({ status: 200, text: report });
  expect(await get()).toMatchObject({ status: 200, text: report });
  expect(made).toBe(2);
});

test("a service that does not offer it answers 403 and names the flag", async () => {
  const answer = await face().get();
  expect(answer).toMatchObject({ status: 403, code: "PERMISSION_DENIED" });
  expect(answer.text).toContain("--allow-doctor");
});

test("a doctor that cannot be run is a fault of ours, its cause in the log alone", async () => {
  const cause = new Error("process ended (code 1): /secret/path");
  const { get, faults } = face(() => Promise.reject(cause));
  const answer = await get();
  expect(answer).toMatchObject({ status: 500, code: "INTERNAL" });
  expect(answer.text).not.toContain("/secret/path");
  expect(faults).toEqual([{ requestId: "id-1", protocol: "http", error: cause }]);
});

test("a stop of the service is answered at once, and a report that fails after it disturbs nobody", async () => {
  const making = createDeferred<string>();
  const asked = createDeferred();
  const { get, shutdown, faults } = face(() => {
    asked.resolve();
    return making.promise;
  });
  const answer = get();
  await asked.promise;
  shutdown.abort(new RegistryError("UNAVAILABLE", "Server exiting"));
  expect(await answer).toEqual({ status: 503, text: '{"error":"Server exiting"}', code: "UNAVAILABLE" });
  making.reject(new Error("killed"));
  expect(faults).toEqual([]);
});

test("a client that goes away is not waited for", async () => {
  const making = createDeferred<string>();
  const asked = createDeferred();
  const { get } = face(() => {
    asked.resolve();
    return making.promise;
  });
  const client = new AbortController();
  const answer = get({ signal: client.signal });
  await asked.promise;
  client.abort();
  expect(await answer).toMatchObject({ status: 499, code: "CANCELLED" });
});
