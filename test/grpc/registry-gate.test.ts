import { createHash } from "node:crypto";
import type { ServiceError } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { Gate } from "../../src/core/gate.js";
import { Principals } from "../../src/core/principals.js";
import { Restrictions } from "../../src/core/restrictions.js";
import { inferenceClient } from "../helpers/inference-client.js";
import { addressOf, createTestFace, startServer } from "./harness.js";
import { createRegistryClient, hold } from "./registry-client.js";

const unaryMethods = [
  "GetServer",
  "ListDevices",
  "Get",
  "List",
  "Register",
  "Renew",
  "Unregister",
  "Checksum",
];

async function start(options: Parameters<typeof createTestFace>[0] = {}) {
  const face = createTestFace(options);
  const address = addressOf(await startServer(face, { allowContents: true }));
  return { face, address, client: createRegistryClient(address) };
}

describe("a gate", () => {
  const token = (name: string) => `${name}: ${createHash("sha256").update(`${name}-token`).digest("hex")}`;
  const principals = () => {
    const parsed = Principals.parse(`${token("alice")}\n${token("bob")}\n${token("ops")} admin`);
    if (!(parsed instanceof Principals)) throw new Error(parsed.join("\n"));
    return parsed;
  };
  const as = (name: string) => ({ authorization: `Bearer ${name}-token` });

  test("is passed by streams as by any call", async () => {
    const { client } = await start({ gate: new Gate({ principals }) });
    for (const method of ["Hold", "Watch", "ReadContents"]) {
      expect(await client.follow(method).end).toMatchObject({ code: "UNAUTHENTICATED" });
    }
    expect(await client.write().answer).toMatchObject({ code: "UNAUTHENTICATED" });
    const mine = await hold(client, {}, as("alice"));
    expect(await client.follow("Hold", { resume: mine.secret }, as("bob")).end).toMatchObject({
      code: "PERMISSION_DENIED",
    });
    expect(await client.call("List", {}, { ...as("bob"), ...mine.headers })).toMatchObject({
      code: "PERMISSION_DENIED",
    });
    expect(await client.call("List", {}, { ...as("alice"), ...mine.headers })).toMatchObject({ code: "OK" });
  });

  test("of restricted protocols takes the server's methods for metadata, all others for shared memory", async () => {
    const restricted = (category: "metadata" | "shared-memory") =>
      new Gate({
        restrictions: Restrictions.ofGrpc([{ categories: [category], key: "key", value: "s3cret" }]),
      });
    const refusedBy = async (gate: Gate) => {
      const { client } = await start({ gate });
      const refused: string[] = [];
      for (const method of unaryMethods) {
        if ((await client.call(method)).code === "UNAVAILABLE") refused.push(method);
      }
      for (const method of ["Hold", "Watch", "ReadContents"]) {
        const stream = client.follow(method);
        const end = stream.end.then(({ code }) => code);
        if ((await Promise.race([end, stream.next().catch(() => end)])) === "UNAVAILABLE")
          refused.push(method);
        stream.cancel();
      }
      const { stream, answer } = client.write();
      stream.end();
      if ((await answer).code === "UNAVAILABLE") refused.push("WriteContents");
      return refused;
    };
    expect(await refusedBy(restricted("metadata"))).toEqual(["GetServer", "ListDevices"]);
    expect(await refusedBy(restricted("shared-memory"))).toEqual([
      ...unaryMethods.slice(2),
      "Hold",
      "Watch",
      "ReadContents",
      "WriteContents",
    ]);
  });

  test("keeps owners apart where that is asked for, over Triton's service too", async () => {
    const policy = { access: "owner", unregisterAll: "own" } as const;
    const { face, client, address } = await start({ gate: new Gate({ principals }), registry: { policy } });
    const register = (name: string, owner: string) =>
      client.call("Register", { ...face.goodRegister, name }, as(owner));
    await register("a", "alice");
    await register("b", "bob");
    const seen = async (who: string) => {
      const { response } = await client.call("List", {}, as(who));
      return response.regions.map(({ name }: { name: string }) => name);
    };
    expect([await seen("alice"), await seen("bob"), await seen("ops")]).toEqual([["a"], ["b"], ["a", "b"]]);
    expect(await client.call("Get", { name: "a" }, as("bob"))).toMatchObject({ code: "NOT_FOUND" });
    for (const method of ["Renew", "Unregister"]) {
      expect((await client.call(method, { name: "a" }, as("bob"))).code).toMatch(
        /NOT_FOUND|PERMISSION_DENIED/,
      );
    }
    expect(await client.follow("ReadContents", { name: "a" }, as("bob")).end).toMatchObject({
      code: "PERMISSION_DENIED",
    });
    const watch = client.follow("Watch", { from_revision: "1" }, as("bob"));
    expect((await watch.next()).event).toBe("start");
    expect((await watch.next()).change.region.name).toBe("b");
    watch.cancel();
    using triton = inferenceClient(address);
    const status = (who: string, name = "") =>
      triton.call("CudaSharedMemoryStatus", { name }, undefined, as(who)).then(
        ({ regions }) => Object.keys(regions as object),
        ({ code }: ServiceError) => code,
      );
    for (let twice = 0; twice < 2; twice++) {
      expect([await status("alice"), await status("bob"), await status("ops")]).toEqual([
        ["a"],
        ["b"],
        ["a", "b"],
      ]);
    }
    expect([await status("bob", "a"), await status("alice", "a")]).toEqual([5, ["a"]]);
  });

  test("shows what was refused at the adoption to its owner and to administrators", async () => {
    const policy = { access: "owner", unregisterAll: "own" } as const;
    const { face, client } = await start({ gate: new Gate({ principals }), registry: { policy } });
    await face.registry.adopt(
      {
        generation: 7n,
        name: "lost",
        handle: face.driver.allocate(64).handle,
        deviceId: 0,
        deviceUuid: "GPU-00000000-0000-0000-0000-000000000000",
        byteSize: 64n,
        offset: 0n,
        owner: "alice",
        session: null,
        protocol: "grpc",
        registeredAt: 0,
        leaseMs: null,
        exporter: null,
        labels: new Map(),
      },
      { whenUsable: Promise.resolve(), allowsUnverified: false },
    );
    const refused = async (who: string) =>
      (await client.call("GetServer", {}, as(who))).response.adoption.refused;
    const lost = {
      name: "lost",
      generation: "7",
      reason: expect.stringContaining("its exporter was not named"),
    };
    expect([await refused("alice"), await refused("ops")]).toEqual([[lost], [lost]]);
    expect(await refused("bob")).toEqual([]);
  });
});
