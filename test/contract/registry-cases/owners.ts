import { expect } from "vitest";
import type { RegistryFaceClient } from "../registry-face-client.js";
import {
  changeOf,
  everyCall,
  expectRefusal,
  names,
  noSuchRegion,
  notOwner,
  type RegistryCase,
  refusalOf,
  taken,
} from "../registry-fixture.js";

const ok = { code: "OK", text: "", regions: [] };

/** What demands the region's owner, whatever the policy. */
const touches: readonly ((face: RegistryFaceClient, name: string, generation: bigint) => Promise<unknown>)[] =
  [
    (face, name) => face.renew(name, { lease_ms: 5000 }),
    (face, name) => face.readContents(name),
    (face, name) => face.readContents(name, { offset: 0n, byte_size: 1n }),
    (face, name) => face.writeContents(name, Buffer.of(1)),
    (face, name) => face.checksum(name),
  ];

const denied = (name: string) => ({ code: "PERMISSION_DENIED", text: notOwner(name), regions: [] });

export const ownerCases: readonly RegistryCase[] = [
  {
    title: "where tokens are wanted, every call wants one",
    on: "owned",
    async run({ face, as, memory }) {
      const missing = "this service wants a token; send it as 'authorization: Bearer <token>'";
      const wrong =
        "the token is not one of this service's; ask whoever runs it for one that is in its --token-file";
      for (const [caller, text] of [
        [face, missing],
        [as({ authorization: "Bearer another-token" }).face, wrong],
      ] as const) {
        for (const call of everyCall(caller, memory)) {
          await expectRefusal(call(), "UNAUTHENTICATED", text);
        }
      }
    },
  },
  {
    title: "with owners' access each sees its own regions alone, an administrator all",
    on: "owned",
    async run({ as, memory }) {
      const [alice, bob, ops] = [as("alice"), as("bob"), as("ops")];
      expect(await alice.face.server()).toMatchObject({ access: "owner", unregister_all: "all" });
      const watches = await Promise.all([alice, bob, ops].map(({ other }) => other.watch()));
      const inVain = refusalOf(bob.face.get("alice's", 200));
      const waiting = ops.face.get("alice's", 60_000);
      const hers = await alice.face.register("alice's", memory.part());
      const his = await bob.other.register("bob's", memory.part());
      expect([hers.owner, his.owner]).toEqual(["alice", "bob"]);
      expect(hers.fingerprint).toBe(his.fingerprint);
      for (const [doors, seen] of [
        [alice, ["alice's"]],
        [bob, ["bob's"]],
        [ops, ["alice's", "bob's"]],
      ] as const) {
        for (const each of [doors.face, doors.other]) {
          expect(names((await each.list()).regions)).toEqual(seen);
          expect(names((await each.list({ owner: "alice" })).regions)).toEqual(
            seen.filter((name) => name === "alice's"),
          );
          expect(names((await each.triton.status()).regions)).toEqual(seen);
          for (const name of ["alice's", "bob's"]) {
            if ((seen as readonly string[]).includes(name))
              expect(await each.get(name)).toMatchObject({ name });
            else await expectRefusal(each.get(name), "NOT_FOUND", noSuchRegion(name));
          }
        }
      }
      const [ofAlice, ofBob, ofOps] = watches;
      const changes = [
        changeOf("registered", "alice's", "requested", { owner: "alice" }),
        changeOf("registered", "bob's", "requested", { owner: "bob" }),
      ] as const;
      expect(await ofAlice?.take(1)).toEqual([changes[0]]);
      expect(await ofBob?.take(1)).toEqual([changes[1]]);
      expect(await ofOps?.take(2)).toEqual(changes);
      for (const watch of watches) watch[Symbol.dispose]();
      expect(await waiting).toEqual(hers);
      expect(await inVain).toMatchObject({ code: "DEADLINE_EXCEEDED" });
    },
  },
  {
    title: "with owners' access another's region is changed by nobody but an administrator",
    on: "owned",
    async run({ as, memory, otherMemory }) {
      const [alice, bob, ops] = [as("alice"), as("bob"), as("ops")];
      const { generation } = await alice.face.register("r", memory.part());
      const refusal = ["PERMISSION_DENIED", notOwner("r")] as const;
      for (const touch of touches) await expectRefusal(touch(bob.face, "r", generation), ...refusal);
      await expectRefusal(bob.face.unregister("r"), ...refusal);
      await expectRefusal(bob.face.unregister("r", { wait_ms: 1, force: true }), ...refusal);
      await expectRefusal(
        bob.face.register("r", { ...otherMemory.part(), replace_generation: generation }),
        ...refusal,
      );
      await expectRefusal(bob.face.register("r", memory.part()), "ALREADY_EXISTS", taken("r"));
      expect(await bob.face.triton.unregister("r")).toEqual(denied("r"));
      expect(await alice.other.get("r")).toMatchObject({ state: "ready", generation, lease_ms: null });
      for (const touch of touches) await touch(ops.face, "r", generation);
      const replaced = await ops.face.register("r", {
        ...otherMemory.part(),
        replace_generation: generation,
      });
      expect(replaced.owner).toBe("ops");
      expect(await ops.other.unregister("r", { force: true })).toEqual({ closed: true, pins: 0n });
    },
  },
  {
    title: "with owners' access an unregister of all takes what the caller may",
    on: "owned",
    async run({ as, memory }) {
      const [alice, bob, ops] = [as("alice"), as("bob"), as("ops")];
      const register = async () => {
        await alice.face.register("alice's", memory.part());
        await bob.face.register("bob's", memory.part());
      };
      await register();
      expect(await alice.face.triton.unregister()).toEqual(ok);
      expect(names((await ops.other.list()).regions)).toEqual(["bob's"]);
      await alice.other.register("alice's", memory.part());
      expect(await ops.face.triton.unregister()).toEqual(ok);
      expect((await ops.other.list()).regions).toEqual([]);
    },
  },
  {
    title:
      "with shared access all see a region and may unregister it; more is for its owner and administrators",
    on: "sharedByTokens",
    async run({ as, memory, otherMemory }) {
      const [alice, bob, ops] = [as("alice"), as("bob"), as("ops")];
      const region = await alice.face.register("r", memory.part());
      const { generation } = region;
      expect(await bob.face.get("r")).toEqual(region);
      expect((await bob.other.list({ owner: "alice" })).regions).toEqual([region]);
      const refusal = ["PERMISSION_DENIED", notOwner("r")] as const;
      for (const touch of touches) await expectRefusal(touch(bob.face, "r", generation), ...refusal);
      await expectRefusal(bob.face.unregister("r", { force: true }), ...refusal);
      await expectRefusal(
        bob.face.register("r", { ...otherMemory.part(), replace_generation: generation }),
        ...refusal,
      );
      await expectRefusal(bob.face.register("r", memory.part()), "ALREADY_EXISTS", taken("r"));
      for (const { face } of [alice, ops]) for (const touch of touches) await touch(face, "r", generation);
      expect(await bob.face.unregister("r", { generation })).toEqual({ closed: true, pins: 0n });
      await alice.face.register("r", memory.part());
      expect(await bob.face.triton.unregister("r")).toEqual(ok);
      await expectRefusal(alice.face.get("r"), "NOT_FOUND", noSuchRegion("r"));
    },
  },
  {
    title: "an unregister of all may take the caller's own regions alone, an administrator's too",
    on: "sharedByTokens",
    async run({ as, memory }) {
      const [alice, bob, ops] = [as("alice"), as("bob"), as("ops")];
      expect(await alice.face.server()).toMatchObject({ access: "shared", unregister_all: "own" });
      for (const [name, { face, other }] of Object.entries({ alice, bob, ops })) {
        await face.register(`${name} 1`, memory.part());
        await other.triton.register({ name: `${name} 2`, handle: memory.part().raw_handle, byteSize: 64n });
      }
      const left = async () => names((await bob.other.list()).regions);
      expect(await alice.face.triton.unregister()).toEqual(ok);
      expect(await left()).toEqual(["bob 1", "bob 2", "ops 1", "ops 2"]);
      expect(await ops.face.triton.unregister()).toEqual(ok);
      expect(await left()).toEqual(["bob 1", "bob 2"]);
    },
  },
  {
    title: "an unregister of all may be refused to everyone, who then unregisters by name",
    on: "strict",
    async run({ face, other, memory }) {
      expect(await face.server()).toMatchObject({ access: "shared", unregister_all: "none" });
      await face.register("a", memory.part());
      await face.register("b", memory.part());
      expect(await face.triton.unregister()).toEqual({
        code: "PERMISSION_DENIED",
        text: "this service unregisters regions by name only (--unregister-all none)",
        regions: [],
      });
      expect(names((await other.list()).regions)).toEqual(["a", "b"]);
      expect(await face.triton.unregister("a")).toEqual(ok);
      expect(await face.unregister("b")).toEqual({ closed: true, pins: 0n });
    },
  },
  {
    title: "a limit of bytes counts by owner, through both APIs and on both faces",
    on: "sharedByTokens",
    async run({ as, hold, memory, openHandles }) {
      const [alice, bob] = [as("alice"), as("bob")];
      const over = (name: string, held: bigint, more: bigint) =>
        `failed to register shared memory region '${name}': the regions of 'alice' have ${held} bytes; with the ${more} of this one they would exceed the 10000 that one client may register (--max-owner-bytes); unregister some first`;
      const { generation } = await alice.face.register("a", memory.part(6000n));
      await expectRefusal(
        alice.face.register("b", memory.part(4001n)),
        "RESOURCE_EXHAUSTED",
        over("b", 6000n, 4001n),
      );
      await alice.other.triton.register({ name: "b", handle: memory.part().raw_handle, byteSize: 4000n });
      await expectRefusal(
        alice.face.register("c", memory.part(1n)),
        "RESOURCE_EXHAUSTED",
        over("c", 10_000n, 1n),
      );
      expect(
        await alice.face.triton.register({ name: "c", handle: memory.part().raw_handle, byteSize: 1n }),
      ).toEqual({ code: "RESOURCE_EXHAUSTED", text: over("c", 10_000n, 1n), regions: [] });
      const session = await hold({}, "alice");
      const { face: inside } = as(session.headers);
      await expectRefusal(
        inside.register("c", memory.part(1n)),
        "RESOURCE_EXHAUSTED",
        over("c", 10_000n, 1n),
      );
      session.cancel();
      // The same again, and what takes a region's place, are no more than there was.
      await alice.face.register("a", memory.part(6000n));
      await alice.face.register("a", { ...memory.part(5999n), replace_generation: generation });
      await alice.face.register("c", memory.part(1n));
      await bob.face.register("d", memory.part(10_000n));
      await alice.other.unregister("b");
      await alice.face.register("b", memory.part(4000n));
      expect(openHandles()).toBe(1);
    },
  },
];
