import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { runCommand, startService } from "../helpers/cudashm.js";

const folder = mkdtempSync(join(tmpdir(), "cudashm-access-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The status of a request whose Host is this. */
function statusWith(host: string, target: { port: number } | { socketPath: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", path: "/v2", headers: { host }, agent: false, ...target };
    const outgoing = request(options, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

test("on loopback a Host that is none of the service's is refused, on its Unix socket any will do", async () => {
  const socketPath = join(folder, "http.sock");
  const args = [`--http-socket=${socketPath}`, "--http-allowed-host=gpu-7.lan"];
  await using service = await startService(args);
  const port = Number(new URL(service.httpUrl).port);
  expect(await statusWith("rebound.example", { port })).toBe(403);
  expect(await statusWith("gpu-7.lan", { port })).toBe(200);
  expect(await statusWith(`localhost:${port}`, { port })).toBe(200);
  expect(await statusWith("rebound.example", { socketPath })).toBe(200);
});

test("where the service listens for other machines, it may be called by any name", async () => {
  await using service = await startService(["--http-address=0.0.0.0"]);
  const port = Number(new URL(service.httpUrl).port);
  expect(await statusWith("gpu-7.lan", { port })).toBe(200);
});

test("names that are given are all that it may be called by there too, as a container published to loopback needs", async () => {
  await using service = await startService(["--http-address=0.0.0.0", "--http-allowed-host=gpu-7.lan"]);
  const port = Number(new URL(service.httpUrl).port);
  expect(await statusWith("rebound.example", { port })).toBe(403);
  expect(await statusWith("gpu-7.lan", { port })).toBe(200);
  expect(await statusWith(`127.0.0.1:${port}`, { port })).toBe(200);
});

test("a token file that is no good ends the start with code 2, and nothing of it is shown", async () => {
  const path = join(folder, "tokens");
  writeFileSync(path, "alice: s3cret\n", { mode: 0o600 });
  const ended = await runCommand(["serve", "--http-port=0", "--grpc-port=0", `--token-file=${path}`]);
  expect(ended).toMatchObject({ code: 2, lines: [] });
  expect(ended.errorText).toContain(`--token-file ${path}: line 1: expected a name, a colon`);
  expect(ended.errorText).not.toContain("s3cret");
});
