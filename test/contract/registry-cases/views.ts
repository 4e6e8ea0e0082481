import { expect } from "vitest";
import type { DeviceView } from "../registry-face-client.js";
import { expectRefusal, maxUint64, noSuchRegion, pinned, type RegistryCase } from "../registry-fixture.js";

export const viewCases: readonly RegistryCase[] = [
  {
    title: "a region is shown in full, by every call and on both faces alike",
    async run({ face, other, memory }) {
      const [device] = await face.devices();
      const began = Date.now();
      const region = await face.register("full", {
        ...memory.part(4000n, 1000n),
        device_uuid: device?.uuid ?? "",
        lease_ms: 60_500,
        exporter: memory.exporter,
        labels: { model: "r\u00e9sum\u00e9", "a/b.c-d_e": "" },
      });
      expect(region).toEqual({
        name: "full",
        kind: "cuda",
        state: "ready",
        reason: "requested",
        device_id: 0n,
        device_uuid: device?.uuid,
        byte_size: 4000n,
        offset: 1000n,
        allocation_byte_size: memory.byteSize,
        owner: "anonymous",
        session: null,
        protocol: face.protocol,
        registered_at: expect.any(Number),
        last_used_at: null,
        lease_ms: 60_500,
        lease_expires_at: expect.any(Number),
        pins: 0n,
        generation: expect.any(BigInt),
        fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
        labels: { model: "r\u00e9sum\u00e9", "a/b.c-d_e": "" },
        exporter: memory.exporter,
        verified: true,
      });
      expect(region.registered_at).toBeGreaterThanOrEqual(began);
      expect(region.registered_at).toBeLessThanOrEqual(Date.now());
      expect(region.lease_expires_at).toBeGreaterThanOrEqual(began + 60_500);
      for (const each of [face, other]) {
        expect(await each.get("full")).toEqual(region);
        expect((await each.list()).regions).toEqual([region]);
      }
    },
  },
  {
    title: "what there is none of is absent",
    async run({ face, other, memory }) {
      const region = await face.register("plain", memory.part());
      expect(region).toMatchObject({
        session: null,
        last_used_at: null,
        lease_ms: null,
        lease_expires_at: null,
        labels: {},
        exporter: null,
        offset: 0n,
      });
      expect(await other.get("plain")).toEqual(region);
    },
  },
  {
    title: "who uses a region, and when it was last used, is shown",
    async run({ face, other, memory }) {
      const { registered_at } = await face.register("used", memory.part());
      const upload = await pinned(face, "used");
      const inUse = await other.get("used");
      expect(inUse).toMatchObject({ pins: 1n, last_used_at: expect.any(Number) });
      expect(inUse.last_used_at).toBeGreaterThanOrEqual(registered_at);
      await upload.finish(Buffer.alloc(1));
      const region = await face.get("used");
      expect(region.pins).toBe(0n);
      expect(region.last_used_at).toBeGreaterThanOrEqual(inUse.last_used_at ?? 0);
      expect(await other.get("used")).toEqual(region);
    },
  },
  {
    title: "regions on one allocation have one fingerprint, and the driver has it open once",
    async run({ face, other, memory, otherMemory, openHandles }) {
      const first = await face.register("first", memory.part(10n));
      const second = await other.register("second", memory.part(20n, 5n));
      const third = await face.register("third", otherMemory.part());
      expect(second.fingerprint).toBe(first.fingerprint);
      expect(third.fingerprint).not.toBe(first.fingerprint);
      expect(openHandles()).toBe(2);
    },
  },
  {
    title: "no two registrations have one generation, whichever face they came by",
    async run({ face, other, memory }) {
      const generations: bigint[] = [];
      for (const each of [face, other, face]) {
        generations.push((await each.register("again", memory.part())).generation);
        await each.unregister("again");
      }
      expect(new Set(generations).size).toBe(3);
      expect(generations.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(generations);
    },
  },
  {
    title: "devices are shown with what of each is mapped here, shared allocations counted once",
    async run({ face, other, memory, otherMemory }) {
      const idle = await face.devices();
      expect(idle.length).toBeGreaterThan(0);
      for (const [ordinal, device] of idle.entries()) {
        expect(device).toEqual({
          ordinal: BigInt(ordinal),
          uuid: expect.stringMatching(/^(GPU|MIG)-[0-9a-f-]{36}$/),
          pci_bus_id: expect.stringMatching(/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$/i),
          name: expect.stringMatching(/./),
          total_bytes: expect.any(BigInt),
          free_bytes: null,
          mapped_bytes: 0n,
          regions: 0n,
        } satisfies Record<keyof DeviceView, unknown>);
      }
      expect(await other.devices()).toEqual(idle);
      await face.register("one", memory.part());
      await face.register("two", memory.part(1n, 1n));
      await face.register("three", otherMemory.part());
      const [device, ...rest] = await face.devices();
      expect(device).toEqual({
        ...idle[0],
        free_bytes: expect.any(BigInt),
        mapped_bytes: memory.byteSize + otherMemory.byteSize,
        regions: 3n,
      });
      expect(rest).toEqual(idle.slice(1));
      expect(await other.devices()).toEqual([device, ...rest]);
    },
  },
  {
    title: "the service tells which run of it this is, and its revision, which grows with every change",
    async run({ face, other, memory }) {
      const server = await face.server();
      expect(server).toEqual({
        name: "cudashm",
        version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
        instance_id: expect.stringMatching(/./),
        epoch: 1n,
        revision: expect.any(BigInt),
        access: "shared",
        unregister_all: "all",
        adoption: { pending: 0n, adopted: 0n, refused: [] },
      });
      expect(await other.server()).toEqual(server);
      await face.register("r", memory.part());
      await face.get("r");
      expect((await other.server()).revision).toBe(server.revision + 1n);
      expect((await face.list()).revision).toBe(server.revision + 1n);
      await other.unregister("r");
      expect((await face.server()).revision).toBe(server.revision + 2n);
    },
  },
  {
    title: "a region that there is not is not found, whatever is asked of it",
    async run({ face, memory }) {
      await face.register("r", memory.part());
      for (const call of [
        () => face.get("none"),
        () => face.renew("none", { lease_ms: 5000 }),
        () => face.renew("none", { generation: maxUint64 }),
        () => face.unregister("none"),
        () => face.unregister("none", { wait_ms: 0, force: true, generation: maxUint64 }),
        () => face.readContents("none"),
        () => face.writeContents("none", Buffer.of(1)),
        () => face.checksum("none"),
      ]) {
        await expectRefusal(call(), "NOT_FOUND", noSuchRegion("none"));
      }
    },
  },
  {
    title: "a name that no region can have is refused, whatever is asked of it",
    async run({ face, memory }) {
      for (const [name, problem] of [
        ["a\nb", "the region name has a control character"],
        ["\u00e9".repeat(513), "the region name has 1026 bytes of UTF-8, at most 1024 are allowed"],
      ] as const) {
        for (const call of [
          () => face.get(name),
          () => face.get(name, 1),
          () => face.renew(name),
          () => face.unregister(name),
          () => face.watch({ name }),
          () => face.readContents(name),
          () => face.writeContents(name, Buffer.of(1)),
          () => face.checksum(name),
        ]) {
          await expectRefusal(call(), "INVALID_ARGUMENT", problem);
        }
        const quoted = name.startsWith("a") ? "a\\u000ab" : `${name.slice(0, 64)}...`;
        await expectRefusal(
          face.register(name, memory.part()),
          "INVALID_ARGUMENT",
          `failed to register shared memory region '${quoted}': invalid args: ${problem}`,
        );
      }
    },
  },
];
