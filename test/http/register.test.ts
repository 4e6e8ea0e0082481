import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { exitingText, RegistryError } from "../../src/core/errors.js";
import { clientShmDisabledText } from "../../src/core/face-context.js";
import { createDeferred } from "../helpers/deferred.js";
import { driverError } from "../helpers/fake-driver.js";
import { Face, registerBody } from "./face.js";

const tooLarge = (bytes: number, limit: number) =>
  `request JSON size of ${bytes} bytes exceeds the maximum allowed input size of ${limit} bytes. Use --http-max-input-size to increase the limit.`;

const errorIn = (answer: { text: string }): unknown => JSON.parse(answer.text).error;

describe("register over HTTP", () => {
  it("answers exactly 200 with an empty JSON body", async () => {
    await using face = await Face.start();
    const answer = await face.register("r", registerBody(face.driver.allocate(4096), 64));
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "content-length": "0" });
    expect(answer.headers["x-request-id"]).toBeTruthy();
    expect(face.registry.status("r")).toMatchObject({
      byteSize: 64n,
      allocationByteSize: 4096n,
      owner: "anonymous",
      protocol: "http",
    });
  });

  it("gives every answer a request id of its own", async () => {
    await using face = await Face.start();
    const answers = await Promise.all(
      ["/v2", "/v2/cudasharedmemory/status", "/nowhere"].map((p) => face.get(p)),
    );
    expect(new Set(answers.map(({ headers }) => headers["x-request-id"])).size).toBe(3);
  });

  it.each([
    ["no content type", {}],
    ["a form's content type", { "content-type": "application/x-www-form-urlencoded" }],
    ["plain text", { "content-type": "text/plain;charset=UTF-8" }],
    ["a wish for gzip", { "accept-encoding": "gzip, deflate" }],
  ])("takes a body with %s", async (_what, headers) => {
    await using face = await Face.start();
    const body = registerBody(face.driver.allocate(64), 64);
    const answer = await face.send("POST", "/v2/cudasharedmemory/region/r/register", { body, headers });
    expect(answer.status).toBe(200);
    expect(answer.headers["content-encoding"]).toBeUndefined();
    expect(face.names()).toEqual(["r"]);
  });

  it("takes a handle broken into lines, as the C++ client sends it", async () => {
    await using face = await Face.start();
    const b64 = Buffer.from(face.driver.allocate(64).handle.exposeBytes()).toString("base64");
    const lines = `${b64.slice(0, 72)}\\n${b64.slice(72)}\\n`;
    const body = `{"raw_handle":{"b64":"${lines}"},"device_id":0,"byte_size":64}`;
    expect((await face.register("r", body)).status).toBe(200);
  });

  it("checks the switch, the name, the body's size, the body and the core in this order", async () => {
    await using off = await Face.start({ allowClientShm: false });
    const disabled = await off.post("/v2/cudasharedmemory/region/%zz/register", "{");
    expect(disabled.status).toBe(501);
    expect(errorIn(disabled)).toBe(clientShmDisabledText);
    const unnamed = await off.post("/v2/cudasharedmemory/register", "{}");
    expect([unnamed.status, errorIn(unnamed)]).toEqual([501, clientShmDisabledText]);
    expect((await off.get("/v2/cudasharedmemory/region/r/register")).status).toBe(405);

    await using face = await Face.start({ maxInputSize: 400 });
    const long = " ".repeat(401);
    const name = await face.post("/v2/cudasharedmemory/region/../register", long);
    expect(errorIn(name)).toMatch(
      /^failed to register shared memory region '\.\.': invalid args: .*not allowed/,
    );
    expect(errorIn(await face.register("r", long))).toBe(tooLarge(401, 400));
    expect(errorIn(await face.register("r", "{"))).toMatch(/^failed to parse the request JSON buffer: /);

    const taken = await face.registerNew("taken", 64);
    const again = await face.register("taken", registerBody(taken, 64));
    expect(again).toMatchObject({ status: 400 });
    expect(errorIn(again)).toBe("shared memory region 'taken' already in manager");
    expect(face.faults).toEqual([]);
  });

  it("asks for a name", async () => {
    await using face = await Face.start();
    const answer = await face.post("/v2/cudasharedmemory/register", "{}");
    expect(answer.status).toBe(400);
    expect(errorIn(answer)).toBe("'region name' is necessary to register cuda shared memory region");
  });

  it.each([
    ["nothing", ""],
    ["an array", "[]"],
    ["null", "null"],
    ["a gzipped body", gzipSync('{"raw_handle":{}}')],
    ["a body nested too deep", "[".repeat(100_000)],
    ["a handle of 63 bytes", `{"raw_handle":{"b64":"${"A".repeat(84)}"},"device_id":0,"byte_size":1}`],
  ])("calls %s the client's fault and stays well", async (_what, body) => {
    await using face = await Face.start();
    const answer = await face.register("r", body);
    expect(answer.status).toBe(400);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(typeof errorIn(answer)).toBe("string");
    expect(face.faults).toEqual([]);
    await face.registerNew("after");
    expect(face.names()).toEqual(["after"]);
  });

  it("passes a device number of 64 bits to the core, which refuses it", async () => {
    await using face = await Face.start();
    for (const deviceId of ["4294967296", "18446744073709551615"]) {
      const body = registerBody(face.driver.allocate(64), 64).replace(
        '"device_id":0',
        `"device_id":${deviceId}`,
      );
      const answer = await face.register("r", body);
      expect(answer.status).toBe(400);
      expect(errorIn(answer)).toContain(deviceId);
    }
    expect(face.driver.openCalls).toBe(0);
  });

  it("tells the driver's refusal with its name, number and cause", async () => {
    await using face = await Face.start();
    face.driver.beforeOpen = () => Promise.reject(driverError(201, "CUDA_ERROR_INVALID_CONTEXT"));
    const answer = await face.register("r", registerBody(face.driver.allocate(64), 64));
    expect(answer.status).toBe(400);
    expect(errorIn(answer)).toMatch(
      /^failed to register shared memory region 'r': invalid args: .*CUDA_ERROR_INVALID_CONTEXT \(201\): hint for 201/,
    );
  });

  it("keeps a fault of ours to itself and the log", async () => {
    await using face = await Face.start();
    const cause = new Error("secret internals");
    face.registry.register = () => Promise.reject(cause);
    const answer = await face.register("r", registerBody(face.driver.allocate(64), 64));
    expect(answer.status).toBe(500);
    expect(errorIn(answer)).toBe("internal error; the cause is in the service's log");
    expect(face.faults).toEqual([
      { requestId: answer.headers["x-request-id"], protocol: "http", error: cause },
    ]);
  });

  it("refuses with 503 once the service is on its way down", async () => {
    await using face = await Face.start();
    face.registry.refuseRegisters();
    const answer = await face.register("r", registerBody(face.driver.allocate(64), 64));
    expect(answer.status).toBe(503);
    expect(errorIn(answer)).toBe("Server exiting");
  });

  it("undoes a register whose client went away during the open", async () => {
    await using face = await Face.start();
    const { signal, register } = nextRegisterOf(face);
    const opened = createDeferred();
    face.driver.beforeOpen = () => opened.promise;
    const connection = await face.open();
    connection.send(registerRequest(registerBody(face.driver.allocate(64), 64)));
    const { aborted } = await signal;
    connection.socket.destroy();
    expect(await aborted).toMatchObject({ code: "CANCELLED" });
    await expect(register()).rejects.toMatchObject({ code: "CANCELLED" });
    opened.resolve();
    face.driver.beforeOpen = undefined;
    await face.registerNew("r");
    expect(face.names()).toEqual(["r"]);
    expect(face.driver.openMappings).toBe(1);
    expect(face.faults).toEqual([]);
  });

  it("answers a register that the stop of the service undoes", async () => {
    await using face = await Face.start();
    const { signal } = nextRegisterOf(face);
    const opened = createDeferred();
    face.driver.beforeOpen = () => opened.promise;
    const answer = face.register("r", registerBody(face.driver.allocate(64), 64));
    await signal;
    face.shutdown.abort(new RegistryError("UNAVAILABLE", exitingText));
    expect(await answer).toMatchObject({ status: 503, text: '{"error":"Server exiting"}' });
    opened.resolve();
  });
});

/** What the registry is given by the next register: its signal, and the promise that it answered. */
function nextRegisterOf(face: Face) {
  const called = createDeferred<{ aborted: Promise<unknown> }>();
  let answered: Promise<unknown> | undefined;
  const { registry } = face;
  registry.register = (request, context) => {
    const aborted = createDeferred<unknown>();
    const { signal } = context;
    signal?.addEventListener("abort", () => aborted.resolve(signal.reason));
    // The next one is the registry's own again.
    Reflect.deleteProperty(registry, "register");
    const registering = registry.register(request, context);
    answered = registering;
    called.resolve({ aborted: aborted.promise });
    return registering;
  };
  return { signal: called.promise, register: () => answered };
}

function registerRequest(body: string): string {
  const path = "/v2/cudasharedmemory/region/r/register";
  return `POST ${path} HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

describe("the limit of a body", () => {
  const path = "/v2/cudasharedmemory/region/r/register";
  const next = "GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n";

  it("lets through a body of exactly the limit", async () => {
    await using face = await Face.start({ maxInputSize: 300 });
    const body = registerBody(face.driver.allocate(64), 64).padEnd(300);
    expect((await face.register("r", body)).status).toBe(200);
  });

  it("is told with the size that was declared, and the connection goes on", async () => {
    await using face = await Face.start({ maxInputSize: 100 });
    const connection = await face.open();
    connection.send(`POST ${path} HTTP/1.1\r\nContent-Length: 101\r\n\r\n${"x".repeat(101)}${next}`);
    expect(await connection.until(/limit\."}/)).toContain(tooLarge(101, 100));
    expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it("is told with the size that came where none was declared, and the connection goes on", async () => {
    await using face = await Face.start({ maxInputSize: 100 });
    const connection = await face.open();
    const chunk = `50\r\n${"x".repeat(0x50)}\r\n`;
    connection.send(`POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`);
    connection.send(`${chunk}${chunk}0\r\n\r\n${next}`);
    expect(await connection.until(/limit\."}/)).toContain(tooLarge(240, 100));
    expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it("holds for a body in chunks of one byte", async () => {
    await using face = await Face.start({ maxInputSize: 16 * 1024 });
    const connection = await face.open();
    connection.send(`POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n`);
    connection.send("1\r\n \r\n".repeat(64 * 1024));
    connection.send(`0\r\n\r\n${next}`);
    expect(await connection.until(/limit\."}/)).toContain(tooLarge(64 * 1024, 16 * 1024));
    expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it("takes a body in chunks of one byte below the limit", async () => {
    await using face = await Face.start();
    const body = registerBody(face.driver.allocate(64), 64);
    const chunks = Array.from(body, (character) => `1\r\n${character}\r\n`).join("");
    const answer = await face.raw(
      `POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunks}0\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(face.names()).toEqual(["r"]);
  });

  it("keeps memory flat while a huge body is thrown away", async () => {
    await using face = await Face.start();
    const megabytes = 256;
    const connection = await face.open();
    connection.send(`POST ${path} HTTP/1.1\r\nContent-Length: ${megabytes * 1024 * 1024}\r\n\r\n`);
    const piece = Buffer.alloc(1024 * 1024, " ");
    let highest = 0;
    const before = process.memoryUsage().rss;
    for (let sent = 0; sent < megabytes; sent++) {
      await new Promise((resolve) => connection.socket.write(piece, resolve));
      highest = Math.max(highest, process.memoryUsage().rss - before);
    }
    expect(await connection.until(/limit\."}/)).toContain(tooLarge(megabytes * 1024 * 1024, 1024 * 1024));
    expect(highest).toBeLessThan(64 * 1024 * 1024);
    connection.socket.destroy();
  });

  it("closes the connection instead where too many bodies are being thrown away", async () => {
    await using face = await Face.start({ maxInputSize: 10, drain: { concurrent: 1, smallBytes: 100 } });
    const head = `POST ${path} HTTP/1.1\r\nContent-Length: 1000\r\n\r\n`;
    const first = await face.open();
    first.send(head);
    const second = await face.open();
    while (!second.isClosed) {
      // The first may still be on its way in; each request that is refused proves that it has arrived.
      second.send(head);
      expect(await second.untilClosed()).toMatch(
        /^HTTP\/1\.1 400 .*connection: close.*request JSON size of 1000/is,
      );
    }
    first.send(`${"x".repeat(1000)}${next}`);
    expect(await first.untilClosed()).toMatch(/^HTTP\/1\.1 400 .*HTTP\/1\.1 200 OK/s);
  });

  it("gives up on a body that does not come, answers, and closes the connection", async () => {
    await using face = await Face.start({ maxInputSize: 10, drain: { timeoutMs: 20 } });
    const answer = await face.raw(`POST ${path} HTTP/1.1\r\nContent-Length: 1000\r\n\r\nx`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*connection: close.*request JSON size of 1000/is);
  });

  it("holds no room for a body whose client went away", async () => {
    await using face = await Face.start({ maxInputSize: 10, drain: { concurrent: 1, smallBytes: 100 } });
    for (let i = 0; i < 3; i++) {
      const connection = await face.open();
      connection.send(`POST ${path} HTTP/1.1\r\nContent-Length: 1000\r\n\r\n`);
      connection.socket.end();
      await connection.untilClosed();
    }
    const answer = await face.raw(
      `POST ${path} HTTP/1.1\r\nContent-Length: 1000\r\n\r\n${"x".repeat(1000)}${next}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*HTTP\/1\.1 200 OK/s);
  });
});
