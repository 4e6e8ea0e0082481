import { describe, expect, it } from "vitest";
import { createDeferred } from "../helpers/deferred.js";
import { type Face, type FaceOptions, registerBody } from "./face.js";

const status = "GET /v2/cudasharedmemory/status HTTP/1.1\r\n";
const live = "GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n";
const path = "/v2/cudasharedmemory/region/r/register";

/** How a connection behaves, whatever it is made of: `start` gives a face that listens. */
export function connectionSuite(start: (options?: FaceOptions) => Promise<Face>): void {
  describe("what the HTTP parser refuses", () => {
    it.each([
      ["a Content-Length that is no number", "Content-Length: abc\r\n", "400 Bad Request"],
      ["a negative Content-Length", "Content-Length: -1\r\n", "400 Bad Request"],
      ["two Content-Lengths", "Content-Length: 1\r\nContent-Length: 2\r\n", "400 Bad Request"],
      [
        "Content-Length with Transfer-Encoding",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "400 Bad Request",
      ],
      ["a header without a name", ": x\r\n", "400 Bad Request"],
      ["headers too large", `X: ${"x".repeat(20_000)}\r\n`, "431 Request Header Fields Too Large"],
    ])("is answered in JSON, and the connection closed: %s", async (_what, header, line) => {
      await using face = await start();
      const answer = await face.raw(`POST ${path} HTTP/1.1\r\n${header}\r\n`);
      const [head = "", body = ""] = answer.split("\r\n\r\n");
      expect(head.split("\r\n")[0]).toBe(`HTTP/1.1 ${line}`);
      expect(head).toMatch(/content-type: application\/json/i);
      expect(head).toMatch(/connection: close/i);
      expect(head).toMatch(/x-request-id: \S+/i);
      expect(JSON.parse(body).error).toMatch(/^malformed HTTP request: /);
      expect(face.faults).toEqual([]);
    });

    it.each([
      "nonsense\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET /\u00e9 HTTP/1.1\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00",
    ])("includes what is no HTTP at all: %j", async (bytes) => {
      await using face = await start();
      expect(await face.raw(Buffer.from(bytes))).toMatch(
        /^HTTP\/1\.1 400 Bad Request\r\n.*\{"error":"malformed/s,
      );
    });

    it("includes a chunk in the middle of a body", async () => {
      await using face = await start();
      const answer = await face.raw(
        `POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*\{"error":"malformed/s);
      await face.registerNew("after");
      expect(face.faults).toEqual([]);
    });

    it("never puts its answer into the middle of another", async () => {
      await using face = await start();
      await face.registerNew("big", 64 * 1024 * 1024);
      const connection = await face.open();
      connection.send("GET /v1/regions/big/contents HTTP/1.1\r\n\r\n");
      expect(await connection.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 OK/);
      connection.send("nonsense\r\n\r\n");
      expect(await connection.untilClosed()).not.toContain("malformed");
      const pipelined = await face.open();
      pipelined.send("GET /v1/regions/big/contents HTTP/1.1\r\n\r\nGET /v2 HTTP/1.1\r\n\r\n");
      expect(await pipelined.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 OK/);
      pipelined.send("nonsense\r\n\r\n");
      expect(await pipelined.untilClosed()).not.toContain("malformed");
      expect(face.registry.status("big").pins).toBe(0);
      expect(face.faults).toEqual([]);
    });
  });

  describe("a connection", () => {
    it.each([
      ["404", "POST /nowhere", "HTTP/1.1 404"],
      ["405", "PUT /v2/health/live", "HTTP/1.1 405"],
      ["400 before the body is read", "POST /v2/cudasharedmemory/region/../register", "HTTP/1.1 400"],
      ["200 whatever the body", "POST /v2/cudasharedmemory/unregister", "HTTP/1.1 200"],
      ["GET with a body", "GET /v2/cudasharedmemory/status", "HTTP/1.1 200"],
    ])("goes on after an answer that left the body unread: %s", async (_what, request, line) => {
      await using face = await start();
      const body = "GET /v2/cudasharedmemory/unregister HTTP/1.1\r\n\r\n".repeat(3000);
      for (const framed of [
        `Content-Length: ${body.length}\r\n\r\n${body}`,
        `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ]) {
        const connection = await face.open();
        connection.send(`${request} HTTP/1.1\r\n${framed}`);
        connection.send(live);
        const answers = (await connection.untilClosed()).match(/HTTP\/1\.1 \d+/g);
        expect(answers).toEqual([line, "HTTP/1.1 200"]);
      }
    });

    it("goes on after a register that is switched off", async () => {
      await using face = await start({ allowClientShm: false });
      const connection = await face.open();
      connection.send(`POST ${path} HTTP/1.1\r\nContent-Length: 70000\r\n\r\n${"x".repeat(70_000)}${live}`);
      const answers = (await connection.untilClosed()).match(/HTTP\/1\.1 \d+/g);
      expect(answers).toEqual(["HTTP/1.1 501", "HTTP/1.1 200"]);
    });

    it("is cut where the unread body of an answered request does not come", async () => {
      await using face = await start({ drain: { timeoutMs: 20 } });
      const connection = await face.open();
      connection.send("POST /nowhere HTTP/1.1\r\nContent-Length: 100\r\n\r\nx");
      expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 404 /);
    });

    it("answers pipelined requests in their order", async () => {
      await using face = await start();
      const body = registerBody(face.driver.allocate(64), 64);
      const connection = await face.open();
      connection.send(
        `POST ${path} HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
          `GET /v2/nowhere HTTP/1.1\r\n\r\n${live}`,
      );
      const answers = (await connection.untilClosed()).match(/HTTP\/1\.1 \d+/g);
      expect(answers).toEqual(["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 200"]);
    });

    it("is asked for the body that waits for 100 Continue", async () => {
      await using face = await start();
      const body = registerBody(face.driver.allocate(64), 64);
      const connection = await face.open();
      connection.send(
        `POST ${path} HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      await connection.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
      connection.send(body);
      expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK/);
      expect(face.names()).toEqual(["r"]);
    });

    it("is served whatever else it expects", async () => {
      await using face = await start();
      expect(await face.raw(`${status}Expect: miracles\r\nConnection: close\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 200 .*\[\]$/s,
      );
    });

    it("is closed after an answer over HTTP/1.0", async () => {
      await using face = await start();
      expect(await face.raw("GET /v2/cudasharedmemory/status HTTP/1.0\r\n\r\n")).toMatch(
        /^HTTP\/1\.1 200 .*\[\]$/s,
      );
    });

    it("leaves the process's Request and Response alone", async () => {
      const before = [globalThis.Request, globalThis.Response];
      await using face = await start();
      await face.get("/v2");
      expect([globalThis.Request, globalThis.Response]).toEqual(before);
    });
  });

  describe("closing the server", () => {
    const never = new AbortController().signal;

    it("does not wait for connections that are idle, silent, or half-way through a header", async () => {
      await using face = await start();
      const parked = await face.open();
      parked.send(`${status}\r\n`);
      await parked.until(/\[\]$/);
      const silent = await face.open();
      const slow = await face.open();
      slow.send("GET /v2 HTTP/1.1\r\nHos");
      await face.server.close(never);
      await Promise.all([parked, silent, slow].map((connection) => connection.untilClosed()));
    });

    it("lets an answer on its way end, says that the connection closes, and takes no more", async () => {
      await using face = await start();
      const started = createDeferred();
      const opened = createDeferred();
      face.driver.beforeOpen = () => {
        started.resolve();
        return opened.promise;
      };
      const body = registerBody(face.driver.allocate(64), 64);
      const connection = await face.open();
      connection.send(`POST ${path} HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await started.promise;
      const closing = face.server.close(never);
      await expect(face.open()).rejects.toThrow(/ECONNREFUSED|ENOENT/);
      opened.resolve();
      expect(await connection.untilClosed()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*connection: close/is);
      await closing;
      expect(face.names()).toEqual(["r"]);
    });

    it("lets every answer end that a client asked for without waiting", async () => {
      await using face = await start();
      const opens: (() => void)[] = [];
      const both = createDeferred();
      face.driver.beforeOpen = () =>
        new Promise<void>((resolve) => {
          opens.push(resolve);
          if (opens.length === 2) both.resolve();
        });
      const connection = await face.open();
      for (const name of ["a", "b"]) {
        const body = registerBody(face.driver.allocate(64), 64);
        const target = `/v2/cudasharedmemory/region/${name}/register`;
        connection.send(`POST ${target} HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      }
      await both.promise;
      const closing = face.server.close(never);
      for (const finish of opens) finish();
      expect((await connection.untilClosed()).match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
      await closing;
      expect(face.names()).toEqual(["a", "b"]);
    });

    it("cuts what is still open at the deadline", async () => {
      await using face = await start();
      const started = createDeferred();
      const opened = createDeferred();
      face.driver.beforeOpen = () => {
        started.resolve();
        return opened.promise;
      };
      const body = registerBody(face.driver.allocate(64), 64);
      const connection = await face.open();
      connection.send(`POST ${path} HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await started.promise;
      const deadline = new AbortController();
      const closing = face.server.close(deadline.signal);
      deadline.abort();
      await closing;
      expect(await connection.untilClosed()).toBe("");
      opened.resolve();
    });

    it("is done once, whoever asks again", async () => {
      await using face = await start();
      await Promise.all([face.server.close(never), face.server.close(never)]);
      await face.server.close(AbortSignal.abort());
    });
  });
}
