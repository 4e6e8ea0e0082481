import { expect, test } from "vitest";
import { anonymousCaller } from "../../src/core/caller.js";
import type { CallContext } from "../../src/core/region.js";
import { keepSecret } from "../helpers/secrets.js";
import { Face, registerBody } from "./face.js";

const cuda = "/v2/cudasharedmemory";
const unknown = JSON.stringify({
  error: "the session is unknown or has ended; open a new one, or send no cudashm-session",
});

/** A session of nobody known, and the header of calls in it. */
function openSession({ registry }: Face) {
  const hold = registry.sessions.open({ caller: anonymousCaller, resumeGraceMs: 0 });
  keepSecret("a session's secret", Buffer.from(hold.secret));
  return { hold, headers: { "cudashm-session": hold.secret } };
}

/** The contexts of the registers to come. */
function contextsOf({ registry }: Face): CallContext[] {
  const contexts: CallContext[] = [];
  const register = registry.register.bind(registry);
  registry.register = (request, context) => {
    contexts.push(context);
    return register(request, context);
  };
  return contexts;
}

test("a call with its secret belongs to the session", async () => {
  await using face = await Face.start();
  const contexts = contextsOf(face);
  const { hold, headers } = openSession(face);
  const body = registerBody(face.driver.allocate(64), 64);
  expect((await face.send("POST", `${cuda}/region/in/register`, { body, headers })).status).toBe(200);
  expect((await face.send("POST", `${cuda}/region/out/register`, { body })).status).toBe(200);
  expect(contexts).toMatchObject([
    { owner: `session:${hold.session.id}`, isAdmin: false, session: hold.session.id },
    { owner: "anonymous", isAdmin: false, session: null },
  ]);
});

test("mounted in another application it is the same", async () => {
  await using face = await Face.start();
  const contexts = contextsOf(face);
  const { hold, headers } = openSession(face);
  const body = registerBody(face.driver.allocate(64), 64);
  const register = (name: string, init: RequestInit) =>
    face.app.request(`${cuda}/region/${name}/register`, { method: "POST", body, ...init });
  expect((await register("in", { headers })).status).toBe(200);
  expect(contexts).toMatchObject([{ session: hold.session.id }]);
  const refused = await register("out", { headers: { "cudashm-session": "unknown" } });
  expect([refused.status, await refused.text()]).toEqual([401, unknown]);
});

test("a secret of no session is refused wherever it is sent, health and unknown paths excepted", async () => {
  await using face = await Face.start();
  const { hold, headers } = openSession(face);
  hold.end();
  for (const [method, path] of [
    ["POST", `${cuda}/region/r/register`],
    ["GET", `${cuda}/status`],
    ["POST", `${cuda}/unregister`],
    ["GET", "/v2/systemsharedmemory/status"],
    ["GET", "/v1/regions/r/contents"],
    ["GET", "/v2"],
    ["GET", "/openapi.json"],
  ] as const) {
    const { status, text } = await face.send(method, path, { headers });
    expect([method, path, status, text]).toEqual([method, path, 401, unknown]);
  }
  for (const [path, status] of [
    ["/v2/health/live", 200],
    ["/v2/health/ready", 200],
    ["/none", 404],
  ] as const) {
    expect([path, (await face.send("GET", path, { headers })).status]).toEqual([path, status]);
  }
});

test("a secret that comes in any other form than its own is none", async () => {
  await using face = await Face.start();
  const [{ hold }, other] = [openSession(face), openSession(face)];
  const { secret } = hold;
  for (const values of [
    [secret, other.hold.secret],
    [secret, secret],
    [secret, ""],
    ["", secret],
    [""],
    [`${secret}\u00fc`],
    ["\u00fc"],
    [`${secret}\t${secret}`],
    [`${secret},`],
    [secret.toUpperCase().padEnd(33, "0")],
    [`"${secret}"`],
  ]) {
    const lines = values.map((value) => `Cudashm-Session: ${value}\r\n`).join("");
    const head = `GET ${cuda}/status HTTP/1.1\r\nHost: a\r\n${lines}Connection: close\r\n\r\n`;
    expect([values, (await face.raw(head)).split(" ")[1]]).toEqual([values, "401"]);
  }
});

test("a secret that comes as the bytes of a gRPC library is refused, told how to send it", async () => {
  await using face = await Face.start();
  const { hold } = openSession(face);
  const headers = { "cudashm-session-bin": Buffer.from(hold.secret).toString("base64") };
  for (const also of [{}, { "cudashm-session": hold.secret }]) {
    const { status, text } = await face.send("GET", `${cuda}/status`, { headers: { ...headers, ...also } });
    expect([status, JSON.parse(text)]).toEqual([
      401,
      { error: "a session's secret is text; send it as cudashm-session" },
    ]);
  }
});

test("the session of another is refused", async () => {
  await using face = await Face.start();
  const alice = { owner: "alice", isAdmin: false, session: null };
  const { secret } = face.registry.sessions.open({ caller: alice, resumeGraceMs: 0 });
  keepSecret("a session's secret", Buffer.from(secret));
  const { status, text } = await face.send("GET", `${cuda}/status`, {
    headers: { "cudashm-session": secret },
  });
  expect([status, JSON.parse(text)]).toEqual([
    403,
    { error: "the session was opened by another; call with the token that it was opened with" },
  ]);
});
