import { expect } from "vitest";
import { expectRefusal, invalidArgs, maxUint64, type RegistryCase } from "../registry-fixture.js";

const week = 604_800_000;

const outOfBounds = (ms: number) => `a lease lasts 1 to 604800 seconds, got ${ms / 1000}`;

const otherGeneration = (found: bigint, meant: bigint) =>
  `shared memory region 'r' has generation ${found}, not ${meant}: it was registered anew`;

export const leaseCases: readonly RegistryCase[] = [
  {
    title: "a lease lasts a second to a week",
    async run({ face, other, memory }) {
      for (const lease_ms of [1000, 1001, week]) {
        expect(await face.register("r", { ...memory.part(), lease_ms })).toMatchObject({ lease_ms });
        expect(await other.get("r")).toMatchObject({ lease_ms });
        await face.unregister("r");
      }
      for (const lease_ms of [0, 999, week + 1]) {
        await expectRefusal(
          face.register("r", { ...memory.part(), lease_ms }),
          "INVALID_ARGUMENT",
          invalidArgs("r", outOfBounds(lease_ms)),
        );
      }
    },
  },
  {
    title: "a renewal starts the lease anew, as long as it was or as long as it says, over either face",
    async run({ face, other, memory }) {
      const region = await face.register("r", { ...memory.part(), lease_ms: 60_000 });
      const renewed = await other.renew("r");
      expect(renewed).toEqual({ ...region, lease_expires_at: renewed.lease_expires_at });
      expect(renewed.lease_expires_at).toBeGreaterThanOrEqual(region.lease_expires_at ?? 0);
      const began = Date.now();
      const longer = await face.renew("r", { lease_ms: 90_500 });
      expect(longer).toEqual({ ...region, lease_ms: 90_500, lease_expires_at: longer.lease_expires_at });
      expect(longer.lease_expires_at).toBeGreaterThanOrEqual(began + 90_500);
      expect(longer.lease_expires_at).toBeLessThanOrEqual(Date.now() + 90_500);
      for (const each of [face, other]) expect(await each.get("r")).toEqual(longer);
      const { revision } = await face.server();
      expect(await face.renew("r", { generation: region.generation })).toMatchObject({ lease_ms: 90_500 });
      expect((await face.server()).revision).toBe(revision);
    },
  },
  {
    title: "a region without a lease is renewed only if it is given one",
    async run({ face, memory }) {
      await face.register("r", memory.part());
      await expectRefusal(
        face.renew("r"),
        "FAILED_PRECONDITION",
        "shared memory region 'r' has no lease; say how long it shall be",
      );
      expect(await face.renew("r", { lease_ms: 1500 })).toMatchObject({ lease_ms: 1500 });
      expect(await face.renew("r", { lease_ms: week })).toMatchObject({ lease_ms: week });
    },
  },
  {
    title: "a renewal that cannot be is refused, and changes nothing",
    async run({ face, other, memory }) {
      const region = await face.register("r", { ...memory.part(), lease_ms: 60_000 });
      const { generation } = region;
      for (const lease_ms of [0, 999, week + 1]) {
        await expectRefusal(face.renew("r", { lease_ms }), "INVALID_ARGUMENT", outOfBounds(lease_ms));
      }
      for (const meant of [0n, generation - 1n, generation + 1n, maxUint64]) {
        await expectRefusal(
          face.renew("r", { generation: meant, lease_ms: 5000 }),
          "FAILED_PRECONDITION",
          otherGeneration(generation, meant),
        );
      }
      expect(await other.get("r")).toEqual(region);
    },
  },
];
