import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { crc32c } from "../../helpers/crc32c.js";
import type { RegistryFaceClient } from "../registry-face-client.js";
import { expectRefusal, maxUint64, type RegistryCase } from "../registry-fixture.js";

const beyond = (byteSize: bigint, offset: bigint, whole: bigint) =>
  `${byteSize} bytes at offset ${offset} are not within the ${whole} bytes of shared memory region 'r'`;

export const contentsCases: readonly RegistryCase[] = [
  {
    title: "what is written is what the exporter has and the other face reads, however much it is",
    async run({ face, other, memory }) {
      const whole = Number(memory.byteSize);
      await face.register("r", memory.part(memory.byteSize));
      const bytes = randomBytes(whole);
      await face.writeContents("r", bytes);
      expect(bytes.equals(await memory.read(0, whole))).toBe(true);
      expect(bytes.equals(await other.readContents("r"))).toBe(true);
      expect(bytes.equals(await face.readContents("r"))).toBe(true);
      const anew = randomBytes(whole);
      await memory.write(0, anew);
      expect(anew.equals(await face.readContents("r"))).toBe(true);
    },
  },
  {
    title: "contents may be part of a region, to its end unless said otherwise",
    async run({ face, memory }) {
      await memory.write(0, Buffer.from("0123456789"));
      await face.register("r", memory.part(10n));
      const read = async (range: Parameters<RegistryFaceClient["readContents"]>[1]) =>
        String(await face.readContents("r", range));
      expect(await read({})).toBe("0123456789");
      expect(await read({ offset: 7n })).toBe("789");
      expect(await read({ byte_size: 3n })).toBe("012");
      expect(await read({ offset: 4n, byte_size: 2n })).toBe("45");
      expect(await read({ offset: 10n })).toBe("");
      expect(await read({ offset: 10n, byte_size: 0n })).toBe("");
      await face.writeContents("r", Buffer.from("ab"), { offset: 8n });
      await face.writeContents("r", Buffer.from("c"), { offset: 0n, byte_size: 1n });
      await face.writeContents("r", Buffer.alloc(0), { offset: 10n, byte_size: 0n });
      expect(await read({})).toBe("c1234567ab");
    },
  },
  {
    title: "the checksum is CRC-32C, of all or of part",
    async run({ face, other, memory }) {
      const bytes = randomBytes(Number(memory.byteSize));
      bytes.write("123456789", 50);
      await memory.write(0, bytes);
      await face.register("r", memory.part(memory.byteSize));
      for (const each of [face, other]) {
        expect(await each.checksum("r", { offset: 50n, byte_size: 9n })).toEqual({
          crc32c: 0xe3069283,
          byte_size: 9n,
        });
        expect(await each.checksum("r")).toEqual({ crc32c: crc32c(bytes), byte_size: memory.byteSize });
        expect(await each.checksum("r", { offset: memory.byteSize })).toEqual({ crc32c: 0, byte_size: 0n });
        expect(await each.checksum("r", { offset: 1n })).toEqual({
          crc32c: crc32c(bytes.subarray(1)),
          byte_size: memory.byteSize - 1n,
        });
      }
      // Leading zeros are told as well.
      await face.writeContents("r", Buffer.alloc(4, 0xff));
      expect(await face.checksum("r", { byte_size: 4n })).toEqual({ crc32c: 0xffffffff, byte_size: 4n });
    },
  },
  {
    title: "nothing beyond a region is read, written or summed up",
    async run({ face, memory }) {
      await memory.write(0, Buffer.alloc(200, 7));
      await face.register("r", memory.part(100n, 50n));
      for (const [offset, byte_size] of [
        [0n, 101n],
        [1n, 100n],
        [100n, 1n],
        [101n, 0n],
        [0n, maxUint64],
        [1n, maxUint64],
        [maxUint64, 0n],
        [maxUint64, 1n],
        [maxUint64, maxUint64],
        [2n ** 63n, 2n ** 63n],
      ] as const) {
        const text = beyond(byte_size, offset, 100n);
        await expectRefusal(face.readContents("r", { offset, byte_size }), "OUT_OF_RANGE", text);
        await expectRefusal(face.checksum("r", { offset, byte_size }), "OUT_OF_RANGE", text);
        if (byte_size > 1000n) continue;
        const bytes = Buffer.alloc(Number(byte_size), 8);
        await expectRefusal(face.writeContents("r", bytes, { offset, byte_size }), "OUT_OF_RANGE", text);
      }
      for (const offset of [101n, maxUint64]) {
        const text = beyond(0n, offset, 100n);
        await expectRefusal(face.readContents("r", { offset }), "OUT_OF_RANGE", text);
        await expectRefusal(face.checksum("r", { offset }), "OUT_OF_RANGE", text);
      }
      expect(await memory.read(0, 200)).toEqual(Buffer.alloc(200, 7));
      expect(await face.get("r")).toMatchObject({ pins: 0n });
    },
  },
  {
    title: "a write of more bytes than fit, and of fewer than were announced, is refused",
    async run({ face, memory }) {
      await memory.write(0, Buffer.alloc(20, 7));
      await face.register("r", memory.part(10n));
      // Over HTTP how many there are is known before the first of them.
      const [tooLong, tooShort] =
        face.protocol === "http"
          ? [beyond(11n, 0n, 10n), "byte_size is 6, the body has 5 bytes; nothing was written"]
          : [
              "the data is longer than the 10 bytes to write; nothing was written",
              "byte_size is 6, the data ended after 5 bytes, which were written",
            ];
      await expectRefusal(face.writeContents("r", Buffer.alloc(11, 8)), "OUT_OF_RANGE", tooLong);
      expect(await memory.read(0, 20)).toEqual(Buffer.alloc(20, 7));
      await expectRefusal(
        face.writeContents("r", Buffer.alloc(5, 8), { byte_size: 6n }),
        "INVALID_ARGUMENT",
        tooShort,
      );
      expect(await memory.read(5, 15)).toEqual(Buffer.alloc(15, 7));
    },
  },
  {
    title: "a write whose bytes are not counted beforehand is refused where they are too many",
    async run({ face, memory }) {
      await memory.write(0, Buffer.alloc(20, 7));
      await face.register("r", memory.part(10n));
      const what = face.protocol === "http" ? "the body" : "the data";
      await expectRefusal(
        face.beginWrite("r").finish(Buffer.alloc(11, 8)),
        "OUT_OF_RANGE",
        `${what} is longer than the 10 bytes to write; nothing was written`,
      );
      expect(await memory.read(0, 20)).toEqual(Buffer.alloc(20, 7));
    },
  },
  {
    title:
      "contents are told to nobody unless the service serves them, not even that there is no such region",
    on: "strict",
    async run({ face, memory }) {
      await face.register("r", memory.part());
      const text =
        "the contents of regions are not served; start the service with --allow-contents to serve them";
      for (const name of ["r", "none"]) {
        await expectRefusal(face.readContents(name), "PERMISSION_DENIED", text);
        await expectRefusal(face.writeContents(name, Buffer.of(1)), "PERMISSION_DENIED", text);
        await expectRefusal(face.checksum(name), "PERMISSION_DENIED", text);
      }
    },
  },
];
