import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { createGrpcFaceClient, type FaceClient } from "../contract/face-client.js";
import { parityCases } from "../contract/parity-cases.js";
import { startService } from "../helpers/cudashm.js";
import { request } from "../helpers/http.js";
import { CppExporter, CppExporters } from "./cpp/exporter.js";
import { createCppHttpCalls } from "./cpp/http-face.js";
import { runProgram } from "./cpp/program.js";
import { buildPrograms, buildTimeoutMs, programs } from "./cpp/programs.js";
import { describeClient } from "./needed-packages.js";

const cuda = "/v2/cudasharedmemory";

describeClient("C++ over HTTP", "cpp", () => {
  let exporters: CppExporters;
  let service: ServiceProcess;
  let grpcFace: FaceClient;
  let calls: ReturnType<typeof createCppHttpCalls>;
  beforeAll(async () => {
    await buildPrograms();
    exporters = new CppExporters();
    service = await startService(["--allow-contents"]);
    grpcFace = createGrpcFaceClient(Number(service.grpcAddress.split(":").at(-1)));
    calls = createCppHttpCalls(service.httpUrl);
  }, buildTimeoutMs);
  afterEach(async () => {
    expect(await grpcFace.unregister()).toMatchObject({ code: "OK" });
  });
  afterAll(async () => {
    expect(await calls.end()).toBe(0);
    grpcFace.close();
    await exporters[Symbol.asyncDispose]();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });

  describe("the service", () => {
    test.each(parityCases.map((parityCase) => [parityCase.title, parityCase] as const))(
      "%s",
      async (_, { run }) => {
        const { allocate, staleHandle } = exporters;
        await run({ face: calls.face, other: grpcFace, allocate, staleHandle });
      },
    );
  });

  test("the requests are those of Triton's C++ client: form content type, line feeds in the base64", async () => {
    const handle = Buffer.from(Array.from({ length: 64 }, (_, i) => i));
    const b64 = handle.toString("base64");
    const body = `{"raw_handle":{"b64":"${b64.slice(0, 72)}\\n${b64.slice(72)}\\n"},"device_id":0,"byte_size":64}`;
    const head = (line: string, host: string, ...more: string[]) =>
      [
        `${line} HTTP/1.1`,
        `Host: ${host}`,
        "User-Agent: libcurl-agent/1.0",
        "Accept: */*",
        ...more,
        "",
        "",
      ].join("\r\n");
    const form = "Content-Type: application/x-www-form-urlencoded";
    const sent = await requestsOf(async (url) => {
      await using recorded = createCppHttpCalls(url);
      await recorded.register(`${cuda}/region/input0/register`, handle);
      await recorded.request("POST", `${cuda}/unregister`);
      await recorded.request("GET", `${cuda}/status`);
    });
    const [host] = sent.hosts;
    expect(sent.texts).toEqual([
      head(`POST ${cuda}/region/input0/register`, host ?? "", `Content-Length: ${body.length}`, form) + body,
      head(`POST ${cuda}/unregister`, host ?? "", "Content-Length: 0", form),
      head(`GET ${cuda}/status`, host ?? ""),
    ]);
  });

  test("a name that is not escaped is taken for escaped: %41 is A, and 100% is refused", async () => {
    const { handle } = await exporters.allocate(4096n);
    expect(await calls.register(`${cuda}/region/%41/register`, handle)).toEqual({ status: 200, text: "" });
    expect((await grpcFace.status()).regions.map(({ name }) => name)).toEqual(["A"]);
    expect((await calls.register(`${cuda}/region/100%/register`, handle)).status).toBe(400);
    expect((await calls.register(`${cuda}/region/a/b/register`, handle)).status).toBe(404);
    expect((await grpcFace.status()).regions).toHaveLength(1);
  });

  test("letters beyond ASCII need no escape, since libcurl escapes them; a blank never leaves libcurl", async () => {
    const { handle } = await exporters.allocate(4096n);
    expect((await calls.register(`${cuda}/region/café/register`, handle)).status).toBe(200);
    expect((await grpcFace.status()).regions.map(({ name }) => name)).toEqual(["café"]);
    await expect(calls.register(`${cuda}/region/my region/register`, handle)).rejects.toThrow(/URL/);
  });

  test("dots in a path are not folded into an unregister of everything", async () => {
    const { handle } = await exporters.allocate(4096n);
    expect(await calls.face.register({ name: "kept", handle, byteSize: 64n })).toMatchObject({ code: "OK" });
    for (const dots of ["..", ".", "%2e%2e"]) {
      expect((await calls.request("POST", `${cuda}/region/${dots}/unregister`)).status).toBe(400);
    }
    expect((await grpcFace.status()).regions.map(({ name }) => name)).toEqual(["kept"]);
  });

  test("500 registers and unregisters, each on a connection of its own, all succeed", async () => {
    const { handle } = await exporters.allocate(4096n);
    const names = Array.from({ length: 500 }, (_, i) => `r${i}`);
    const statuses = await Promise.all(
      names.map(async (name) => {
        const registered = await calls.register(`${cuda}/region/${name}/register`, handle);
        const unregistered = await calls.request("POST", `${cuda}/region/${name}/unregister`);
        return `${registered.status} ${unregistered.status}`;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set(["200 200"]));
    expect((await grpcFace.status()).regions).toEqual([]);
  });

  test("the example registers, lists and unregisters, and prints a refusal", async () => {
    await using exporter = await CppExporter.start();
    const client = (...args: string[]) =>
      runProgram(programs.httpClient, [service.httpUrl, ...args], exporter.line);
    const ok = { code: 0, stdout: "", stderr: "" };
    const listed = { ...ok, stdout: '[{"name":"in put/é","device_id":0,"byte_size":4096}]\n' };
    expect(await client("register", "in put/é")).toEqual(ok);
    expect(await client("register", "in put/é")).toEqual({
      code: 1,
      stdout: "",
      stderr: `HTTP 400: {"error":"shared memory region 'in put/é' already in manager"}\n`,
    });
    expect(await client("status", "in put/é")).toEqual(listed);
    expect(await client("status")).toEqual(listed);
    expect((await client("unregister", "..")).code).toBe(1);
    expect(await client("status")).toEqual(listed);
    expect(await client("unregister", "in put/é")).toEqual(ok);
    expect(await client("register", "second")).toEqual(ok);
    expect(await client("unregister-all")).toEqual(ok);
    expect(await client("status")).toEqual({ ...ok, stdout: "[]\n" });
  });

  test("the service sees what the C++ exporter writes, and the exporter what is written through the service", async () => {
    await using exporter = await CppExporter.start(8192);
    await runProgram(programs.httpClient, [service.httpUrl, "register", "shared"], exporter.line);
    const contents = (offset: number, byteSize: number) =>
      `${service.httpUrl}/v1/regions/shared/contents?offset=${offset}&byte_size=${byteSize}`;
    await exporter.write(0, "from C++");
    expect(await request("GET", contents(0, 9))).toEqual({ status: 200, text: "from C++\0" });
    expect((await request("PUT", contents(8176, 16), "from the service")).status).toBe(200);
    expect(await exporter.read(8176, 16)).toBe("from the service");
    expect(await exporter.end()).toBe(0);
  });
});

/** What a client sends to a server that answers each request with an empty success and closes the connection. */
async function requestsOf(run: (url: string) => Promise<void>) {
  const texts: string[] = [];
  const server = createServer((socket: Socket) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      const [head = "", body] = text.split("\r\n\r\n", 2);
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
      if (body === undefined || body.length < length) return;
      texts.push(text);
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await run(`http://${host}`);
  } finally {
    server.close();
  }
  return { texts, hosts: [host] };
}
