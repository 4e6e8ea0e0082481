import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Gate } from "../../src/core/gate.js";
import { InFlight } from "../../src/core/in-flight.js";
import { Principals } from "../../src/core/principals.js";
import { Restrictions } from "../../src/core/restrictions.js";
import { createDeferred } from "../helpers/deferred.js";
import { Face, registerBody } from "./face.js";

const cuda = "/v2/cudasharedmemory";

function principals(...names: string[]): () => Principals {
  const lines = names.map((name) => `${name}: ${createHash("sha256").update(`${name}-token`).digest("hex")}`);
  const parsed = Principals.parse(lines.join("\n"));
  if (!(parsed instanceof Principals)) throw new Error(parsed.join("\n"));
  return () => parsed;
}

const as = (name: string) => ({ headers: { authorization: `Bearer ${name}-token` } });

describe("a restricted API", () => {
  const gate = new Gate({
    restrictions: Restrictions.ofHttp([{ categories: ["shared-memory"], key: "Admin-Key", value: "s3cret" }]),
  });

  test("is refused without its header, the method not looked at", async () => {
    await using face = await Face.start({ gate });
    for (const [method, path] of [
      ["POST", `${cuda}/unregister`],
      ["GET", `${cuda}/status`],
      ["GET", `${cuda}/register`],
      ["PUT", `${cuda}/region/r/status`],
      ["POST", "/v2/systemsharedmemory/unregister"],
      ["GET", "/v1/regions/r/contents"],
    ] as const) {
      const { status, text, headers } = await face.send(method, path);
      expect([method, path, status]).toEqual([method, path, 403]);
      expect(JSON.parse(text)).toEqual({ error: "This API is restricted, expecting header 'Admin-Key'" });
      expect(headers["x-error-code"]).toBe("PERMISSION_DENIED");
    }
  });

  test("is answered with its header, and nothing else needs one", async () => {
    await using face = await Face.start({ gate });
    const headers = { "admin-key": "s3cret" };
    expect((await face.send("GET", `${cuda}/status`, { headers })).status).toBe(200);
    expect((await face.send("PUT", `${cuda}/status`, { headers })).status).toBe(405);
    for (const path of ["/v2", "/v2/health/live", "/v2/health/ready", "/openapi.json"]) {
      expect([path, (await face.get(path)).status]).toEqual([path, 200]);
    }
    expect((await face.get(`${cuda}/none`)).status).toBe(404);
  });
});

/** Status of a GET of the status of all with these header lines; of our own server, and mounted in another's. */
async function statusesWith(face: Face, lines: readonly (readonly [string, string])[]): Promise<number[]> {
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const answer = await face.raw(`GET ${cuda}/status HTTP/1.1\r\nHost: a\r\n${text}Connection: close\r\n\r\n`);
  const mounted = await face.app.request(`${cuda}/status`, {
    headers: lines.map(([name, value]) => [name, value] as [string, string]),
  });
  return [Number(answer.split(" ")[1]), mounted.status];
}

describe("a header that comes twice", () => {
  test("is no token, whichever of the two is one", async () => {
    await using face = await Face.start({ gate: new Gate({ principals: principals("alice", "bob") }) });
    const [alice, bob, nobody] = ["Bearer alice-token", "Bearer bob-token", "Bearer nobody-token"] as const;
    for (const [first, second] of [
      [alice, bob],
      [alice, alice],
      [nobody, alice],
      [alice, nobody],
      [alice, ""],
      ["", alice],
      ["Bearer", "alice-token"],
    ] as const) {
      const lines = [
        ["Authorization", first],
        ["authorization", second],
      ] as const;
      expect([first, second, ...(await statusesWith(face, lines))]).toEqual([first, second, 401, 401]);
    }
    expect(await statusesWith(face, [["AUTHORIZATION", alice]])).toEqual([200, 200]);
  });

  // Node keeps the first of two of some headers, and puts the others together.
  test.each(["Admin-Key", "From"])("does not open what %s restricts", async (key) => {
    const restrictions = Restrictions.ofHttp([{ categories: ["shared-memory"], key, value: "s3cret" }]);
    await using face = await Face.start({ gate: new Gate({ restrictions }) });
    for (const [first, second] of [
      ["s3cret", "s3cret"],
      ["s3cret", "other"],
      ["other", "s3cret"],
      ["s3cret", ""],
    ] as const) {
      const lines = [
        [key, first],
        [key.toUpperCase(), second],
      ] as const;
      expect([first, second, ...(await statusesWith(face, lines))]).toEqual([first, second, 403, 403]);
    }
    expect(await statusesWith(face, [[key, "s3cret"]])).toEqual([200, 200]);
  });
});

describe("where tokens are wanted", () => {
  test("a call without one is refused, and says how to send one", async () => {
    await using face = await Face.start({ gate: new Gate({ principals: principals("alice") }) });
    for (const headers of [{}, { authorization: "Basic YWxpY2U6YWxpY2UtdG9rZW4=" }]) {
      const answer = await face.send("POST", `${cuda}/unregister`, { headers });
      expect([answer.status, answer.headers["www-authenticate"], answer.headers["x-error-code"]]).toEqual([
        401,
        "Bearer",
        "UNAUTHENTICATED",
      ]);
      expect(JSON.parse(answer.text)).toEqual({
        error: "this service wants a token; send it as 'authorization: Bearer <token>'",
      });
    }
    expect((await face.send("GET", "/v2", as("bob"))).status).toBe(401);
  });

  test("a region belongs to whoever's token registered it", async () => {
    await using face = await Face.start({ gate: new Gate({ principals: principals("alice", "bob") }) });
    const body = registerBody(face.driver.allocate(64), 64);
    for (const name of ["bob", "alice"]) {
      const sent = { body, ...as(name) };
      expect((await face.send("POST", `${cuda}/region/of-${name}/register`, sent)).status).toBe(200);
    }
    expect(face.registry.statuses().map(({ name, owner }) => [name, owner])).toEqual([
      ["of-alice", "alice"],
      ["of-bob", "bob"],
    ]);
  });

  test("health is open to all, and an unknown path is no secret", async () => {
    await using face = await Face.start({ gate: new Gate({ principals: principals("alice") }) });
    expect((await face.get("/v2/health/live")).status).toBe(200);
    expect((await face.get("/v2/health/ready")).status).toBe(200);
    expect((await face.get("/none")).status).toBe(404);
  });

  test("the refusal of a large body leaves the connection usable", async () => {
    await using face = await Face.start({ gate: new Gate({ principals: principals("alice") }) });
    const connection = await face.open();
    const body = "x".repeat(300_000);
    connection.send(
      `POST ${cuda}/region/r/register HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(await connection.until(/\}$/)).toMatch(/^HTTP\/1\.1 401 /);
    connection.send("GET /v2/health/live HTTP/1.1\r\n\r\n");
    expect(await connection.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 /);
    connection.socket.destroy();
  });
});

test("without a token file, basic credentials are of no account", async () => {
  await using face = await Face.start();
  const headers = { authorization: "Basic YTpi" };
  expect((await face.send("GET", `${cuda}/status`, { headers })).status).toBe(200);
});

describe("a limit of requests in flight", () => {
  test("refuses one more, health excepted, and forgets a request that was answered", async () => {
    await using face = await Face.start({ gate: new Gate({ inFlight: new InFlight(1) }) });
    const [opening, opened] = [createDeferred(), createDeferred()];
    face.driver.beforeOpen = () => {
      opening.resolve();
      return opened.promise;
    };
    const slow = face.registerNew("slow");
    await opening.promise;
    const refused = await face.get(`${cuda}/status`);
    expect([refused.status, refused.headers["x-error-code"]]).toEqual([429, "RESOURCE_EXHAUSTED"]);
    expect(JSON.parse(refused.text)).toEqual({
      error:
        "as many requests are being answered as this service takes at once (1, --max-requests-in-flight); try again later",
    });
    expect((await face.get("/v2/health/ready")).status).toBe(200);
    opened.resolve();
    await slow;
    for (let i = 0; i < 3; i++) {
      expect((await face.get(`${cuda}/status`)).status).toBe(200);
      expect((await face.get(`${cuda}/region/none/status`)).status).toBe(404);
      expect((await face.get("/v1/regions/slow/contents")).status).toBe(200);
    }
  });

  test("forgets a request whose client went away", async () => {
    await using face = await Face.start({ gate: new Gate({ inFlight: new InFlight(1) }) });
    const [opening, opened] = [createDeferred(), createDeferred()];
    face.driver.beforeOpen = () => {
      opening.resolve();
      return opened.promise;
    };
    const connection = await face.open();
    const body = registerBody(face.driver.allocate(64), 64);
    connection.send(
      `POST ${cuda}/region/r/register HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await opening.promise;
    connection.socket.destroy();
    await expect.poll(async () => (await face.get(`${cuda}/status`)).status).toBe(200);
    opened.resolve();
  });
});

describe("a limit of connections", () => {
  test("tells one more so and closes it, and takes another once one is gone", async () => {
    await using face = await Face.start({ maxConnections: 1 });
    const first = await face.open();
    first.send("GET /v2/health/live HTTP/1.1\r\n\r\n");
    await first.until(/\r\n\r\n/);
    const second = await face.raw(`POST ${cuda}/unregister HTTP/1.1\r\nContent-Length: 0\r\n\r\n`);
    expect(second).toMatch(/^HTTP\/1\.1 429 [\s\S]*X-Error-Code: RESOURCE_EXHAUSTED/);
    expect(JSON.parse(second.split("\r\n\r\n")[1] ?? "")).toEqual({
      error: "there are as many connections as this service takes (--http-max-connections); try again later",
    });
    // It is still served, and when it ends there is room.
    first.send("GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n");
    await first.untilClosed();
    expect(await face.raw("GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 200 /,
    );
  });
});
