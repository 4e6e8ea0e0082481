import { afterAll, beforeAll, expect, test } from "vitest";
import type { ServiceProcess } from "../../../src/cli/service-process.js";
import { startExporter, startService } from "../../helpers/cudashm.js";

let service: ServiceProcess;
beforeAll(async () => {
  service = await startService(["--allow-contents"]);
});
afterAll(async () => {
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

const cuda = "/v2/cudasharedmemory";
const call = (path: string, init?: RequestInit) => fetch(service.httpUrl + path, init);

/** Status, content type and body of an answer, whatever the body is. */
async function seen(path: string, init?: RequestInit) {
  const answer = await call(path, init);
  return [answer.status, answer.headers.get("content-type"), await answer.text()];
}

const done = [200, "application/json", ""];

test("a page's or a script's fetch registers, reads the status and unregisters", async () => {
  await using exporter = await startExporter(["--fill=fetch"]);
  const region = `${cuda}/region/${encodeURIComponent("from fetch/1")}`;
  // With no headers set, fetch calls a string text/plain.
  expect(await seen(`${region}/register`, { method: "POST", body: exporter.bodyLine })).toEqual(done);
  const listed = [{ name: "from fetch/1", device_id: 0, byte_size: 4096 }];
  expect(await (await call(`${cuda}/status`)).json()).toEqual(listed);
  expect(await (await call(`${region}/status`)).json()).toEqual(listed);
  const contents = await call(`/v1/regions/${encodeURIComponent("from fetch/1")}/contents?byte_size=5`);
  expect(await contents.text()).toBe("fetch");
  expect(await seen(`${region}/unregister`, { method: "POST" })).toEqual(done);
  expect(await seen(`${cuda}/status`)).toEqual([200, "application/json", "[]"]);
});

test("takes a body as text, bytes, a Blob or a stream", async () => {
  await using exporter = await startExporter();
  const bytes = new TextEncoder().encode(exporter.bodyLine);
  const bodies: RequestInit[] = [
    { body: exporter.bodyLine, headers: { "content-type": "application/json" } },
    { body: bytes },
    { body: new Blob([bytes], { type: "application/octet-stream" }) },
    { body: new Blob([bytes]).stream(), duplex: "half" },
  ];
  for (const [i, body] of bodies.entries()) {
    expect(await seen(`${cuda}/region/body-${i}/register`, { method: "POST", ...body })).toEqual(done);
  }
  expect(await (await call(`${cuda}/status`)).json()).toHaveLength(4);
  expect(await seen(`${cuda}/unregister`, { method: "POST" })).toEqual(done);
});

test("every refusal is JSON with a text", async () => {
  await using exporter = await startExporter();
  const register = (body: string) => seen(`${cuda}/region/r/register`, { method: "POST", body });
  const refused = (status: number, error: string) => [status, "application/json", JSON.stringify({ error })];
  expect(await register("{}")).toEqual(
    refused(400, "Shared memory register request has no 'raw_handle' field"),
  );
  expect(await register(exporter.bodyLine)).toEqual(done);
  expect(await register(exporter.bodyLine)).toEqual(
    refused(400, "shared memory region 'r' already in manager"),
  );
  expect(await seen(`${cuda}/region/nobody/status`)).toEqual(
    refused(404, "Unable to find cuda shared memory region: 'nobody'"),
  );
  expect(await seen(`${cuda}/region/r/unregister`)).toEqual(refused(405, "Method Not Allowed"));
  expect(await seen("/nowhere")).toEqual(refused(404, "Not Found"));
  expect(await seen(`${cuda}/region/r/unregister`, { method: "POST" })).toEqual(done);
});

test("names of dots, which fetch folds away, can neither be registered nor unregister another region", async () => {
  await using exporter = await startExporter();
  const post = { method: "POST", body: exporter.bodyLine };
  await seen(`${cuda}/region/kept/register`, post);
  for (const name of [".", "%2E"]) {
    expect((await seen(`${cuda}/region/${name}/register`, post))[0]).toBe(404);
    expect((await seen(`${cuda}/region/${name}/unregister`, { method: "POST" }))[0]).toBe(404);
  }
  expect((await seen(`${cuda}/region/../register`, post))[0]).toBe(400);
  expect(await (await call(`${cuda}/status`)).json()).toMatchObject([{ name: "kept" }]);
  expect(await seen(`${cuda}/region/kept/unregister`, { method: "POST" })).toEqual(done);
});
