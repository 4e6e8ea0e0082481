import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { addressOf, createTestFace, startServer } from "./harness.js";

const fixture = fileURLToPath(new URL("../fixtures/session-process.mjs", import.meta.url));

/** A face, and a client in a process of its own that holds a session with two regions in it. */
async function startClient(keepalive: { keepaliveTimeMs?: number; keepaliveTimeoutMs?: number } = {}) {
  const face = createTestFace();
  const server = await startServer(face, keepalive);
  const client = new LineProcess(process.execPath, [fixture, addressOf(server)]);
  onTestFinished(() => client[Symbol.asyncDispose]());
  const raw_handle = face.goodRegister.raw_handle.toString("base64");
  for (const name of ["a", "b"]) {
    const told = await client.ask<{ registered: string; owner: string; id: string }>({
      ...face.goodRegister,
      name,
      raw_handle,
    });
    expect(told).toEqual({ registered: name, owner: `session:${told.id}`, id: told.id });
  }
  expect(face.registry.statuses().map(({ name }) => name)).toEqual(["a", "b"]);
  return { face, client };
}

const patience = { timeout: 20_000 };

test("a client that is killed takes the regions of its session along", async () => {
  const { face, client } = await startClient();
  await client.kill("SIGKILL");
  await expect.poll(() => face.registry.statuses(), patience).toEqual([]);
  expect(face.driver).toMatchObject({ opens: 1, closes: 1 });
  expect(face.faults).toEqual([]);
});

test("a client that no longer runs, though its connection stands, loses its session by keepalive", async () => {
  const { face, client } = await startClient({ keepaliveTimeMs: 100, keepaliveTimeoutMs: 1000 });
  process.kill(client.pid, "SIGSTOP");
  await expect.poll(() => face.registry.statuses(), patience).toEqual([]);
  expect(face.driver.openMappings).toBe(0);
  process.kill(client.pid, "SIGCONT");
  expect(JSON.parse(await client.nextLine())).toMatchObject({ error: expect.any(String) });
  await client.kill("SIGKILL");
});
