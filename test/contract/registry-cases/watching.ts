import { expect } from "vitest";
import { changeOf, expectRefusal, maxUint64, type RegistryCase } from "../registry-fixture.js";

export const watchCases: readonly RegistryCase[] = [
  {
    title: "a watch begins with where it is and tells every change, whichever face it came by",
    async run({ face, other, memory }) {
      const server = await face.server();
      const { instance_id, epoch, revision } = server;
      using watch = await face.watch();
      using otherWatch = await other.watch();
      expect(watch.start).toEqual({ instance_id, epoch, revision });
      expect(otherWatch.start).toEqual(watch.start);
      const a = await face.register("a", { ...memory.part(), labels: { of: "a" }, lease_ms: 60_000 });
      const b = await other.register("b", memory.part());
      await other.unregister("a");
      await face.triton.unregister("b");
      const events = await watch.take(4);
      expect(events).toEqual([
        { change: { kind: "registered", reason: "requested", revision: revision + 1n, region: a } },
        { change: { kind: "registered", reason: "requested", revision: revision + 2n, region: b } },
        changeOf("unregistered", "a", "requested", { generation: a.generation, owner: "anonymous" }),
        changeOf("unregistered", "b", "requested", { generation: b.generation, owner: "anonymous" }),
      ]);
      expect(events.map((event) => "change" in event && event.change.revision)).toEqual(
        [1n, 2n, 3n, 4n].map((step) => revision + step),
      );
      expect(await otherWatch.take(4)).toEqual(events);
    },
  },
  {
    title: "what changes nothing is not told: looks, uses, renewals, refusals, dry runs and the same again",
    async run({ face, memory, otherMemory }) {
      const registration = { ...memory.part(), lease_ms: 60_000 };
      await face.register("r", registration);
      using watch = await face.watch();
      await face.get("r");
      await face.list();
      await face.checksum("r");
      await face.writeContents("r", Buffer.of(1));
      await face.renew("r", { lease_ms: 5000 });
      await face.register("r", registration);
      await face.register("dry", { ...memory.part(), dry_run: true });
      await expectRefusal(face.register("r", otherMemory.part()), "ALREADY_EXISTS", /./);
      await expectRefusal(face.register("big", memory.part(maxUint64)), "INVALID_ARGUMENT", /./);
      await face.unregister("r");
      const { revision } = await face.server();
      expect(revision).toBe(watch.start.revision + 1n);
      expect(await watch.take(1)).toEqual([changeOf("unregistered", "r")]);
    },
  },
  {
    title: "a watch goes on from a revision, and misses and repeats nothing",
    async run({ face, other, memory }) {
      using whole = await face.watch();
      const first = whole.start.revision + 1n;
      for (const name of ["a", "b", "c"]) await face.register(name, memory.part());
      const events = await whole.take(3);
      for (const each of [face, other]) {
        using all = await each.watch({ from_revision: first });
        expect(all.start).toEqual({ ...whole.start, revision: first + 2n });
        expect(await all.take(3)).toEqual(events);
        using rest = await each.watch({ from_revision: first + 2n });
        expect(await rest.take(1)).toEqual(events.slice(2));
        using future = await each.watch({ from_revision: first + 3n });
        using now = await each.watch();
        const { region } = { region: await each.register(`by ${each.protocol}`, memory.part()) };
        const change = { kind: "registered", reason: "requested", revision: expect.any(BigInt), region };
        for (const watch of [future, now]) expect(await watch.take(1)).toEqual([{ change }]);
        await each.unregister(region.name);
        if (each === face) break;
      }
    },
  },
  {
    title: "a watch from the beginning has the whole history, from revision 0 as from 1",
    async run({ face, other, memory }) {
      await face.register("r", memory.part());
      const { revision } = await face.server();
      using zero = await face.watch({ from_revision: 0n });
      using one = await other.watch({ from_revision: 1n });
      const events = await zero.take(Number(revision));
      expect(events.map((event) => "change" in event && event.change.revision)).toEqual(
        Array.from({ length: Number(revision) }, (_, index) => BigInt(index + 1)),
      );
      expect(await one.take(Number(revision))).toEqual(events);
    },
  },
  {
    title: "a watch of one region tells of that alone",
    async run({ face, other, memory }) {
      using watch = await face.watch({ name: "a/b c" });
      const from_revision = watch.start.revision + 1n;
      for (const name of ["a", "a/b c", "a/b"]) await other.register(name, memory.part());
      await other.unregister("a");
      await other.unregister("a/b c");
      const expected = [changeOf("registered", "a/b c"), changeOf("unregistered", "a/b c")];
      expect(await watch.take(2)).toEqual(expected);
      using again = await other.watch({ name: "a/b c", from_revision });
      expect(await again.take(2)).toEqual(expected);
    },
  },
  {
    title: "a watch from a revision that is yet to come is refused",
    async run({ face }) {
      const { revision } = await face.server();
      for (const from_revision of [revision + 2n, maxUint64]) {
        await expectRefusal(
          face.watch({ from_revision }),
          "OUT_OF_RANGE",
          `from_revision ${from_revision} is yet to come: the revision is ${revision}, perhaps since the service was restarted`,
        );
      }
    },
  },
  {
    title: "who waits for a region gets it as soon as there is one, over either face",
    async run({ face, other, memory, untilInFlight }) {
      const waiting = [face, other].map((each) => each.get("r", 60_000));
      await untilInFlight(2);
      await face.register("another", memory.part());
      const region = await face.register("r", memory.part());
      for (const each of waiting) expect(await each).toEqual(region);
      for (const each of [face, other]) expect(await each.get("r", 0)).toEqual(region);
    },
  },
  {
    title: "who waits for a region in vain is told so when the time is over",
    async run({ face }) {
      for (const wait_ms of [0, 1, 20]) {
        await expectRefusal(
          face.get("r", wait_ms),
          "DEADLINE_EXCEEDED",
          "shared memory region 'r' did not become ready in the time given",
        );
      }
    },
  },
];
