import { expect } from "vitest";
import {
  changeOf,
  expectRefusal,
  invalidArgs,
  maxUint64,
  pinned,
  type RegistryCase,
} from "../registry-fixture.js";

const notReplaceable = (name: string, why: string) =>
  `failed to register shared memory region '${name}': the region of that name cannot be replaced: ${why}`;

export const replaceCases: readonly RegistryCase[] = [
  {
    title: "a region takes the place of the one that has the generation that is meant",
    async run({ face, other, memory, otherMemory, openHandles }) {
      const old = await face.register("r", { ...memory.part(), labels: { of: "old" } });
      using watch = await other.watch({ name: "r" });
      const replace_generation = old.generation;
      const anew = await other.register("r", { ...otherMemory.part(128n), replace_generation });
      expect(anew).toMatchObject({
        state: "ready",
        reason: "replaced",
        byte_size: 128n,
        allocation_byte_size: otherMemory.byteSize,
        labels: {},
        protocol: other.protocol,
      });
      expect(anew.generation).toBeGreaterThan(old.generation);
      expect(await face.get("r")).toEqual(anew);
      expect(await watch.take(2)).toEqual([
        changeOf("unregistered", "r", "replaced", { generation: old.generation }),
        changeOf("registered", "r", "replaced", { generation: anew.generation }),
      ]);
      expect(openHandles()).toBe(1);
    },
  },
  {
    title: "a region of another generation is not replaced",
    async run({ face, other, memory, otherMemory, openHandles }) {
      const region = await face.register("r", memory.part());
      const { generation } = region;
      for (const meant of [0n, generation - 1n, generation + 1n, maxUint64]) {
        await expectRefusal(
          face.register("r", { ...otherMemory.part(), replace_generation: meant }),
          "FAILED_PRECONDITION",
          `shared memory region 'r' has generation ${generation}, not ${meant}: it was registered anew`,
        );
      }
      await expectRefusal(
        face.register("none", { ...otherMemory.part(), replace_generation: generation }),
        "FAILED_PRECONDITION",
        notReplaceable("none", "there is none"),
      );
      expect(await other.get("r")).toEqual(region);
      expect(openHandles()).toBe(1);
    },
  },
  {
    title: "a region that is in use is not replaced, and stays as it is",
    async run({ face, other, memory, otherMemory, openHandles }) {
      const { generation } = await face.register("r", memory.part());
      const upload = await pinned(other, "r");
      await expectRefusal(
        face.register("r", { ...otherMemory.part(), replace_generation: generation }),
        "FAILED_PRECONDITION",
        /: the region of that name cannot be replaced: it is used by 1; wait until they let go$/,
      );
      expect(await face.get("r")).toMatchObject({ state: "ready", generation, pins: 1n });
      expect(openHandles()).toBe(1);
      await upload.finish(Buffer.alloc(64));
    },
  },
  {
    title: "a region stays if what was to take its place cannot be opened",
    async run({ face, other, memory, openHandles }) {
      const region = await face.register("r", memory.part());
      const replace_generation = region.generation;
      await expectRefusal(
        face.register("r", { ...memory.part(memory.byteSize + 1n), replace_generation }),
        "INVALID_ARGUMENT",
        invalidArgs(
          "r",
          `byte_size ${memory.byteSize + 1n} exceeds the ${memory.byteSize} bytes of the allocation`,
        ),
      );
      await expectRefusal(
        face.register("r", { ...memory.part(), raw_handle: new Uint8Array(64), replace_generation }),
        "INVALID_ARGUMENT",
        /CUDA_ERROR_INVALID_VALUE/,
      );
      expect(await other.get("r")).toEqual(region);
      expect(openHandles()).toBe(1);
    },
  },
  {
    title: "a dry run of a replacement replaces nothing",
    async run({ face, memory, otherMemory, openHandles }) {
      const region = await face.register("r", memory.part());
      const dry = { ...otherMemory.part(), replace_generation: region.generation, dry_run: true };
      expect(await face.register("r", dry)).toMatchObject({
        state: "registering",
        allocation_byte_size: otherMemory.byteSize,
      });
      expect(await face.get("r")).toEqual(region);
      expect(openHandles()).toBe(1);
    },
  },
];
