import { expect } from "vitest";
import {
  expectRefusal,
  expectRefusalAlike,
  invalidArgs,
  names,
  noSuchRegion,
  type RegistryCase,
  taken,
} from "../registry-fixture.js";

export const registerCases: readonly RegistryCase[] = [
  {
    title: "64 bytes that are no handle are refused with the driver's error and a cause",
    async run({ face, other, memory }) {
      const raw_handle = new Uint8Array(64).fill(0xff);
      await expectRefusalAlike(
        { face, other },
        (each) => each.register("r", { ...memory.part(), raw_handle }),
        "INVALID_ARGUMENT",
        /^failed to register shared memory region 'r': invalid args: .*CUDA_ERROR_INVALID_VALUE \(1\): .+/,
      );
    },
  },
  {
    title: "the same again is the region that there is, whichever face it comes by",
    async run({ face, other, memory, opens }) {
      const before = opens();
      const registration = { ...memory.part(100n, 8n), labels: { a: "1" } };
      const region = await face.register("r", registration);
      const { device_id: _, ...rest } = registration;
      for (const each of [face, other]) {
        expect(await each.register("r", registration)).toEqual(region);
        expect(await each.register("r", { ...rest, device_uuid: region.device_uuid })).toEqual(region);
        // What a region is told of besides its memory does not make it another.
        expect(await each.register("r", { ...registration, labels: { b: "2" } })).toEqual(region);
      }
      expect(opens()).toBe(before + 1);
      expect((await face.server()).revision).toBe((await face.list()).revision);
    },
  },
  {
    title: "the same again starts the lease anew",
    async run({ face, other, memory }) {
      const registration = { ...memory.part(), lease_ms: 60_000 };
      const region = await face.register("r", registration);
      const again = await other.register("r", registration);
      expect(again).toEqual({ ...region, lease_expires_at: again.lease_expires_at });
      expect(again.lease_expires_at).toBeGreaterThanOrEqual(region.lease_expires_at ?? 0);
    },
  },
  {
    title: "a name that is taken by other memory, or by more or less of the same, is refused",
    async run({ face, other, memory, otherMemory }) {
      const region = await face.register("r", memory.part(100n, 8n));
      for (const registration of [
        memory.part(101n, 8n),
        memory.part(99n, 8n),
        memory.part(100n, 9n),
        memory.part(100n),
        otherMemory.part(100n, 8n),
      ]) {
        for (const each of [face, other]) {
          await expectRefusal(each.register("r", registration), "ALREADY_EXISTS", taken("r"));
        }
      }
      expect(await face.get("r")).toEqual(region);
    },
  },
  {
    title: "while it is being opened a region is not shown, and the same again waits for it",
    on: "slow",
    async run({ face, other, memory, opens }) {
      const before = opens();
      const registering = [face, other, face].map((each) => each.register("r", memory.part()));
      const waiting = [face, other].map((each) => each.get("r", 60_000));
      for (const each of [face, other]) {
        expect((await each.list()).regions).toEqual([]);
        await expectRefusal(each.get("r"), "NOT_FOUND", noSuchRegion("r"));
        await expectRefusal(each.renew("r", { lease_ms: 5000 }), "NOT_FOUND", noSuchRegion("r"));
      }
      const [region, ...twins] = await Promise.all(registering);
      for (const twin of [...twins, ...(await Promise.all(waiting))]) expect(twin).toEqual(region);
      expect(opens()).toBe(before + 1);
    },
  },
  {
    title: "a dry run opens, tells the size of the allocation, closes, and registers nothing",
    async run({ face, other, memory, openHandles, opens }) {
      const before = { opens: opens(), revision: (await face.server()).revision };
      const dry = await face.register("dry", {
        ...memory.part(10n, 20n),
        lease_ms: 5000,
        labels: { a: "b" },
        exporter: memory.exporter,
        dry_run: true,
      });
      expect(dry).toMatchObject({
        name: "dry",
        state: "registering",
        reason: "requested",
        byte_size: 10n,
        offset: 20n,
        allocation_byte_size: memory.byteSize,
        owner: "anonymous",
        protocol: face.protocol,
        lease_ms: 5000,
        labels: { a: "b" },
        exporter: memory.exporter,
        pins: 0n,
      });
      expect([opens(), openHandles()]).toEqual([before.opens + 1, 0]);
      for (const each of [face, other]) {
        await expectRefusal(each.get("dry"), "NOT_FOUND", noSuchRegion("dry"));
        expect((await each.server()).revision).toBe(before.revision);
      }
      const { device_uuid, fingerprint } = await face.register("dry", memory.part());
      expect(dry).toMatchObject({ device_uuid, fingerprint });
    },
  },
  {
    title: "a dry run is refused as the register would be",
    async run({ face, memory, otherMemory, openHandles }) {
      const dry = { ...memory.part(memory.byteSize + 1n), dry_run: true };
      await expectRefusal(
        face.register("dry", dry),
        "INVALID_ARGUMENT",
        invalidArgs(
          "dry",
          `byte_size ${memory.byteSize + 1n} exceeds the ${memory.byteSize} bytes of the allocation`,
        ),
      );
      await expectRefusal(
        face.register("dry", { ...memory.part(), lease_ms: 999, dry_run: true }),
        "INVALID_ARGUMENT",
        invalidArgs("dry", "a lease lasts 1 to 604800 seconds, got 0.999"),
      );
      expect(openHandles()).toBe(0);
      const region = await face.register("r", memory.part());
      await expectRefusal(
        face.register("r", { ...otherMemory.part(), dry_run: true }),
        "ALREADY_EXISTS",
        taken("r"),
      );
      expect(await face.register("r", { ...memory.part(), dry_run: true })).toEqual(region);
      expect(names((await face.list()).regions)).toEqual(["r"]);
    },
  },
  {
    title: "while client shared memory is disabled every register is refused, and the rest is answered",
    on: "closed",
    async run({ face, memory, opens }) {
      const text =
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
      await expectRefusal(face.register("r", memory.part()), "UNIMPLEMENTED", text);
      await expectRefusal(face.register("r", { ...memory.part(), dry_run: true }), "UNIMPLEMENTED", text);
      expect((await face.list()).regions).toEqual([]);
      await expectRefusal(face.get("r"), "NOT_FOUND", noSuchRegion("r"));
      await expectRefusal(face.unregister("r"), "NOT_FOUND", noSuchRegion("r"));
      expect(opens()).toBe(0);
    },
  },
];
