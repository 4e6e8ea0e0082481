import { expect } from "vitest";
import { expectRefusal, noSuchRegion, type RegistryCase, taken } from "../registry-fixture.js";

const ok = { code: "OK", text: "", regions: [] };

export const tritonCases: readonly RegistryCase[] = [
  {
    title: "Triton's calls know the regions, and these know Triton's",
    async run({ face, other, memory }) {
      const { raw_handle } = memory.part();
      await face.register("ours", memory.part(100n, 8n));
      expect(await other.triton.register({ name: "Triton's", handle: raw_handle, byteSize: 64n })).toEqual(
        ok,
      );
      expect((await face.triton.status()).regions).toEqual([
        { name: "Triton's", deviceId: "0", byteSize: "64" },
        { name: "ours", deviceId: "0", byteSize: "100" },
      ]);
      expect(await face.get("Triton's")).toMatchObject({
        state: "ready",
        owner: "anonymous",
        protocol: other.protocol,
        byte_size: 64n,
        offset: 0n,
        lease_ms: null,
        exporter: null,
        labels: {},
      });
      expect(await face.triton.unregister("ours")).toEqual(ok);
      expect(await face.unregister("Triton's")).toEqual({ closed: true, pins: 0n });
      await expectRefusal(other.get("ours"), "NOT_FOUND", noSuchRegion("ours"));
      expect((await other.triton.status()).regions).toEqual([]);
    },
  },
  {
    title: "Triton's register of a name that is taken is refused, of the same as well",
    async run({ face, other, memory }) {
      const { raw_handle: handle } = memory.part();
      const region = await face.register("r", memory.part());
      for (const { triton } of [face, other]) {
        expect(await triton.register({ name: "r", handle, byteSize: 64n })).toEqual({
          code: "ALREADY_EXISTS",
          text: taken("r"),
          regions: [],
        });
      }
      expect(await face.get("r")).toEqual(region);
    },
  },
  {
    title: "a name that Triton's register took is taken, unless it is for the same",
    async run({ face, other, memory, otherMemory }) {
      const { raw_handle: handle } = memory.part();
      await other.triton.register({ name: "r", handle, byteSize: 64n });
      const region = await other.get("r");
      await expectRefusal(face.register("r", otherMemory.part()), "ALREADY_EXISTS", taken("r"));
      await expectRefusal(face.register("r", memory.part(65n)), "ALREADY_EXISTS", taken("r"));
      expect(await face.register("r", memory.part())).toEqual(region);
    },
  },
  {
    title: "Triton's unregister of all takes regions of both",
    async run({ face, other, memory, openHandles }) {
      const { raw_handle: handle } = memory.part();
      await face.register("leased", { ...memory.part(), lease_ms: 60_000 });
      await other.register("labelled", { ...memory.part(), labels: { a: "b" } });
      await other.triton.register({ name: "Triton's", handle, byteSize: 64n });
      expect(await face.triton.unregister()).toEqual(ok);
      expect((await other.list()).regions).toEqual([]);
      expect(openHandles()).toBe(0);
    },
  },
];
