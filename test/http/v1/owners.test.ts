import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Gate } from "../../../src/core/gate.js";
import type { RegistryPolicy } from "../../../src/core/policy.js";
import { Principals } from "../../../src/core/principals.js";
import { keepSecret } from "../../helpers/secrets.js";
import { Face } from "../face.js";
import { bodyOf, pathOf, put, refusalOf, registration } from "./regions.js";

const lines = [
  ["alice", ""],
  ["bob", ""],
  ["ops", " admin"],
].map(([name, mark]) => `${name}: ${createHash("sha256").update(`${name}-token`).digest("hex")}${mark}`);
const principals = Principals.parse(lines.join("\n"));

async function start(access: RegistryPolicy["access"]): Promise<Face> {
  if (!(principals instanceof Principals)) throw new Error(principals.join("\n"));
  const gate = new Gate({ principals: () => principals });
  const face = await Face.start({ gate, registry: { policy: { access, unregisterAll: "all" } } });
  for (const name of ["alice", "bob"]) {
    const answer = await put(face, `${name}'s`, face.driver.allocate(64), { lease_seconds: 60 }, as(name));
    expect(bodyOf(answer)).toMatchObject({ owner: name });
  }
  return face;
}

const as = (name: string) => ({ authorization: `Bearer ${name}-token` });
const alices = pathOf("alice's");
const alicesInTriton = "/v2/cudasharedmemory/region/alice's";

const denied = [
  403,
  "PERMISSION_DENIED",
  "shared memory region 'alice's' belongs to another client; call as its owner or with an admin's token",
];
const notFound = [404, "NOT_FOUND", "Unable to find cuda shared memory region: 'alice's'"];

/** What demands the region's owner, whatever the policy. */
const touches = [
  ["GET", `${alices}/contents`],
  ["GET", `${alices}/contents?byte_size=1`],
  ["PUT", `${alices}/contents`],
  ["GET", `${alices}/checksum`],
  ["GET", `${alices}/checksum?byte_size=1`],
  ["POST", `${alices}/renew`],
  ["DELETE", `${alices}?force=true`],
] as const;

describe("with shared access", () => {
  it("everyone sees every region, and unregisters it as in Triton", async () => {
    await using face = await start("shared");
    const headers = as("bob");
    for (const path of ["/v1/regions", "/v2/cudasharedmemory/status"]) {
      expect((await face.send("GET", path, { headers })).text).toMatch(/alice's.*bob's/);
    }
    expect(bodyOf(await face.send("GET", alices, { headers }))).toMatchObject({ owner: "alice" });
    expect((await face.send("DELETE", alices, { headers })).status).toBe(200);
    await put(face, "alice's", face.driver.allocate(64), {}, as("alice"));
    expect((await face.send("POST", `${alicesInTriton}/unregister`, { headers })).status).toBe(200);
    expect(face.names()).toEqual(["bob's"]);
  });

  it.each(touches)("%s %s is for the owner and administrators", async (method, path) => {
    await using face = await start("shared");
    expect(refusalOf(await face.send(method, path, { headers: as("bob") }))).toEqual(denied);
    for (const name of ["alice", "ops"]) {
      await put(face, "alice's", face.driver.allocate(64), { lease_seconds: 60 }, as("alice"));
      expect([name, (await face.send(method, path, { headers: as(name) })).status]).toEqual([name, 200]);
    }
  });

  it("a region is replaced by its owner and administrators", async () => {
    await using face = await start("shared");
    const body = registration(face.driver.allocate(64), { replace_generation: 1 });
    expect(refusalOf(await face.send("PUT", alices, { body, headers: as("bob") }))).toEqual(denied);
    expect((await face.send("PUT", alices, { body, headers: as("alice") })).status).toBe(200);
  });
});

describe("with access for owners", () => {
  it("each sees its own regions, on both surfaces", async () => {
    await using face = await start("owner");
    for (const [name, seen] of [
      ["alice", ["alice's"]],
      ["bob", ["bob's"]],
      ["ops", ["alice's", "bob's"]],
    ] as const) {
      const headers = as(name);
      const nameOf = (region: { name: string }) => region.name;
      const full = bodyOf(await face.send("GET", "/v1/regions", { headers }));
      expect([name, full.regions.map(nameOf)]).toEqual([name, seen]);
      const status = bodyOf(await face.send("GET", "/v2/cudasharedmemory/status", { headers }));
      expect([name, status.map(nameOf)]).toEqual([name, seen]);
    }
  });

  it("another's region is not there to be shown", async () => {
    await using face = await start("owner");
    for (const path of [alices, `${alicesInTriton}/status`]) {
      expect(refusalOf(await face.send("GET", path, { headers: as("bob") }))).toEqual(notFound);
      expect((await face.send("GET", path, { headers: as("alice") })).status).toBe(200);
      expect((await face.send("GET", path, { headers: as("ops") })).status).toBe(200);
    }
  });

  it.each([...touches, ["DELETE", alices], ["POST", `${alicesInTriton}/unregister`]] as const)(
    "%s %s is for the owner and administrators",
    async (method, path) => {
      await using face = await start("owner");
      expect(refusalOf(await face.send(method, path, { headers: as("bob") }))).toEqual(denied);
      for (const name of ["alice", "ops"]) {
        await put(face, "alice's", face.driver.allocate(64), { lease_seconds: 60 }, as("alice"));
        expect([name, (await face.send(method, path, { headers: as(name) })).status]).toEqual([name, 200]);
      }
    },
  );

  it("a name that another holds is taken", async () => {
    await using face = await start("owner");
    const answer = await put(face, "alice's", face.driver.allocate(64), {}, as("bob"));
    expect(refusalOf(answer)).toEqual([
      400,
      "ALREADY_EXISTS",
      "shared memory region 'alice's' already in manager",
    ]);
  });
});

describe("a call that belongs to a session", () => {
  it("registers what ends with the session", async () => {
    await using face = await Face.start();
    const hold = face.registry.sessions.open({
      caller: { owner: "anonymous", isAdmin: false, session: null },
      resumeGraceMs: 0,
    });
    const { id } = hold.session;
    keepSecret("a session's secret", Buffer.from(hold.secret, "hex"));
    const headers = { "cudashm-session": hold.secret };
    const answer = await put(face, "r", face.driver.allocate(64), {}, headers);
    expect(bodyOf(answer)).toMatchObject({ owner: `session:${id}`, session: id });
    expect((await face.send("GET", pathOf("r", "/contents"))).status).toBe(403);
    expect((await face.send("GET", pathOf("r", "/contents"), { headers })).status).toBe(200);
    hold.release();
    while (face.names().length > 0) await face.get("/v2/health/live");
    const [status, code] = refusalOf(await face.send("GET", "/v1/regions", { headers }));
    expect([status, code]).toEqual([401, "UNAUTHENTICATED"]);
  });
});
