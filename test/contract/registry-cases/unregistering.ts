import { expect } from "vitest";
import {
  changeOf,
  expectRefusal,
  invalidArgs,
  maxUint64,
  noSuchRegion,
  pinned,
  type RegistryCase,
  taken,
} from "../registry-fixture.js";

const leaving = "shared memory region 'r' is being unregistered";
const inUse = (pins: number) =>
  `shared memory region 'r' is unregistered and still used by ${pins}; its mapping is closed when they let go`;

export const unregisterCases: readonly RegistryCase[] = [
  {
    title: "an unregister is answered once the mapping is closed, with a wait or without",
    async run({ face, other, memory, openHandles }) {
      for (const options of [
        {},
        { wait_ms: 0 },
        { wait_ms: 300_000 },
        { force: true },
        { wait_ms: 1, force: true },
      ]) {
        await other.register("r", memory.part());
        expect(await face.unregister("r", options)).toEqual({ closed: true, pins: 0n });
        expect(openHandles()).toBe(0);
        await expectRefusal(face.unregister("r", options), "NOT_FOUND", noSuchRegion("r"));
      }
    },
  },
  {
    title: "memory is not told as closed while another region keeps it mapped",
    async run({ face, other, memory, openHandles }) {
      await face.register("first", memory.part());
      await other.register("second", memory.part(1n, 64n));
      expect(await face.unregister("first", { wait_ms: 5000 })).toEqual({ closed: false, pins: 0n });
      expect(openHandles()).toBe(1);
      expect(await face.unregister("second", { wait_ms: 5000 })).toEqual({ closed: true, pins: 0n });
      expect(openHandles()).toBe(0);
    },
  },
  {
    title: "a region of another generation is not unregistered",
    async run({ face, other, memory }) {
      const { generation } = await face.register("r", memory.part());
      for (const meant of [0n, generation - 1n, generation + 1n, maxUint64]) {
        await expectRefusal(
          face.unregister("r", { generation: meant, force: true }),
          "FAILED_PRECONDITION",
          `shared memory region 'r' has generation ${generation}, not ${meant}: it was registered anew`,
        );
      }
      expect(await other.get("r")).toMatchObject({ state: "ready", generation });
      expect(await other.unregister("r", { generation })).toEqual({ closed: true, pins: 0n });
    },
  },
  {
    title: "a wait is at most five minutes",
    async run({ face, memory }) {
      await face.register("r", memory.part());
      const text = "a wait lasts 0 to 300 seconds, got 300.001";
      await expectRefusal(face.unregister("r", { wait_ms: 300_001 }), "INVALID_ARGUMENT", text);
      await expectRefusal(face.get("r", 300_001), "INVALID_ARGUMENT", text);
      expect(await face.get("r", 300_000)).toMatchObject({ state: "ready" });
    },
  },
  {
    title: "a region in use is let go of by its users: nobody else begins, and its name stays taken",
    async run({ face, other, memory, otherMemory, openHandles, untilInFlight }) {
      const region = await face.register("r", { ...memory.part(), lease_ms: 60_000 });
      using watch = await other.watch({ name: "r" });
      const upload = await pinned(face, "r");
      expect(await face.unregister("r")).toEqual({ closed: false, pins: 1n });
      expect(await other.unregister("r")).toEqual({ closed: false, pins: 1n });
      for (const each of [face, other]) {
        expect(await each.get("r")).toMatchObject({ state: "draining", reason: "requested", pins: 1n });
        await expectRefusal(each.unregister("r", { wait_ms: 1 }), "DEADLINE_EXCEEDED", inUse(1));
        await expectRefusal(each.readContents("r"), "FAILED_PRECONDITION", leaving);
        await expectRefusal(each.writeContents("r", Buffer.of(1)), "FAILED_PRECONDITION", leaving);
        await expectRefusal(each.checksum("r"), "FAILED_PRECONDITION", leaving);
        await expectRefusal(each.renew("r"), "FAILED_PRECONDITION", leaving);
        await expectRefusal(each.register("r", otherMemory.part()), "ALREADY_EXISTS", taken("r"));
        await expectRefusal(each.register("r", memory.part()), "ALREADY_EXISTS", taken("r"));
        await expectRefusal(
          each.register("r", { ...otherMemory.part(), replace_generation: region.generation }),
          "FAILED_PRECONDITION",
          /cannot be replaced: it is draining$/,
        );
      }
      expect(openHandles()).toBe(1);
      const waiting = [face, other].map((each) => each.unregister("r", { wait_ms: 60_000 }));
      // Those two, the upload and the watch.
      await untilInFlight(4);
      await upload.finish(Buffer.alloc(64, 1));
      for (const each of waiting) expect(await each).toEqual({ closed: true, pins: 0n });
      expect(openHandles()).toBe(0);
      expect(await watch.take(2)).toEqual([changeOf("draining", "r"), changeOf("unregistered", "r")]);
      expect(await memory.read(0, 64)).toEqual(Buffer.alloc(64, 1));
    },
  },
  {
    title:
      "after Triton's unregister a region in use may still be used, as in Triton, until another call lets nobody in",
    async run({ face, other, memory, untilInFlight }) {
      await face.register("r", memory.part());
      const upload = await pinned(face, "r");
      expect(await face.triton.unregister("r")).toMatchObject({ code: "OK" });
      for (const each of [face, other]) {
        expect(await each.get("r")).toMatchObject({ state: "draining", pins: 1n });
        expect(await each.readContents("r")).toEqual(await memory.read(0, 64));
        expect((await each.triton.status("r")).regions).toMatchObject([{ name: "r" }]);
      }
      expect(await other.unregister("r")).toEqual({ closed: false, pins: 1n });
      for (const each of [face, other]) {
        await expectRefusal(each.readContents("r"), "FAILED_PRECONDITION", leaving);
      }
      const waiting = other.unregister("r", { wait_ms: 60_000 });
      await untilInFlight(2);
      await upload.finish(Buffer.of(1));
      expect(await waiting).toEqual({ closed: true, pins: 0n });
    },
  },
  {
    title: "force takes a region, after the wait, from whoever uses it",
    async run({ face, other, memory, openHandles }) {
      const { generation } = await face.register("r", memory.part());
      using watch = await face.watch({ name: "r" });
      const uploads = [await pinned(face, "r"), other.beginWrite("r")];
      await expect.poll(async () => (await face.get("r")).pins, { interval: 5 }).toBe(2n);
      expect(await other.unregister("r", { wait_ms: 1, force: true, generation })).toEqual({
        closed: true,
        pins: 0n,
      });
      expect(openHandles()).toBe(0);
      for (const upload of uploads) {
        await expectRefusal(
          upload.finish(Buffer.alloc(64)),
          "FAILED_PRECONDITION",
          "shared memory region 'r' was unregistered by force; nothing was written",
        );
      }
      expect(await watch.take(2)).toEqual([
        changeOf("draining", "r", "forced"),
        changeOf("unregistered", "r", "forced"),
      ]);
    },
  },
  {
    title: "force is told as the reason, also of a region that was draining",
    async run({ face, other, memory }) {
      await face.register("r", memory.part());
      using watch = await other.watch({ name: "r" });
      const upload = await pinned(face, "r");
      expect(await face.triton.unregister("r")).toMatchObject({ code: "OK" });
      expect(await other.get("r")).toMatchObject({ state: "draining", reason: "requested" });
      expect(await face.unregister("r", { force: true })).toEqual({ closed: true, pins: 0n });
      expect(await watch.take(2)).toEqual([
        changeOf("draining", "r"),
        changeOf("unregistered", "r", "forced"),
      ]);
      await expectRefusal(
        upload.finish(Buffer.alloc(64)),
        "FAILED_PRECONDITION",
        /was unregistered by force/,
      );
    },
  },
  {
    title:
      "a region that the driver does not close is kept, cannot be used, and is closed by the next unregister",
    on: "sick",
    async run({ face, other, memory, otherMemory, openHandles }) {
      const region = await face.register("r", { ...memory.part(), lease_ms: 60_000 });
      using watch = await other.watch({ name: "r" });
      await expectRefusal(
        face.unregister("r", { wait_ms: 1000 }),
        "INTERNAL",
        /^failed to close CUDA IPC handle: CUDA_ERROR_INVALID_VALUE \(1\)/,
      );
      expect(openHandles()).toBe(1);
      const unusable =
        "shared memory region 'r' was unregistered and could not be closed; unregister it again";
      for (const each of [face, other]) {
        const shown = {
          name: "r",
          state: "close_failed",
          reason: "requested",
          generation: region.generation,
        };
        expect(await each.get("r")).toMatchObject(shown);
        expect((await each.list({ state: "close_failed" })).regions).toMatchObject([shown]);
        await expectRefusal(each.readContents("r"), "FAILED_PRECONDITION", unusable);
        await expectRefusal(each.checksum("r"), "FAILED_PRECONDITION", unusable);
        await expectRefusal(each.renew("r"), "FAILED_PRECONDITION", leaving);
        await expectRefusal(each.register("r", memory.part()), "ALREADY_EXISTS", taken("r"));
        await expectRefusal(
          each.register("r", { ...otherMemory.part(), replace_generation: region.generation }),
          "FAILED_PRECONDITION",
          /cannot be replaced: it is close_failed$/,
        );
      }
      await expectRefusal(
        face.register("twin", memory.part()),
        "INVALID_ARGUMENT",
        invalidArgs(
          "twin",
          "an earlier mapping of this handle could not be closed; unregister its region again, or export the memory anew",
        ),
      );
      expect(await other.unregister("r", { wait_ms: 1000 })).toEqual({ closed: true, pins: 0n });
      expect(openHandles()).toBe(0);
      expect(await watch.take(2)).toEqual([changeOf("close_failed", "r"), changeOf("unregistered", "r")]);
    },
  },
];
