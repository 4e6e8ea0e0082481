import { expect } from "vitest";
import {
  expectRefusal,
  expectRefusalAlike,
  invalidArgs,
  maxUint64,
  type RegistryCase,
  type RegistryFixture,
} from "../registry-fixture.js";

const numbered = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, ""]));

const keyProblem = "a label's key has 1 to 63 letters, digits, dots, dashes, underscores and slashes";
const valueProblem = "the value of label a must be at most 255 bytes of text without control characters";

const refusedLabels: readonly [Readonly<Record<string, string>>, string][] = [
  [numbered(33), "33 labels are too many, at most 32 are allowed"],
  [{ "": "x" }, keyProblem],
  [{ "a b": "x" }, keyProblem],
  [{ "\u00e9": "x" }, keyProblem],
  [{ "a=b": "x" }, keyProblem],
  [{ ["k".repeat(64)]: "x" }, keyProblem],
  [{ a: "x".repeat(256) }, valueProblem],
  [{ a: "\u00e9".repeat(128) }, valueProblem],
  [{ a: "x\ny" }, valueProblem],
  [{ a: "\u0085" }, valueProblem],
];

/** Where a region is, and what is written on it. */
export const placeCases: readonly RegistryCase[] = [
  {
    title: "a device may be given by its UUID instead of its number, or by both if they agree",
    async run({ face, other, memory }) {
      for (const [ordinal, { uuid }] of (await other.devices()).entries()) {
        const { device_id: _, ...rest } = memory.part();
        const found = { device_id: BigInt(ordinal), device_uuid: uuid };
        expect(await face.register(`by UUID ${ordinal}`, { ...rest, device_uuid: uuid })).toMatchObject(
          found,
        );
        expect(await face.register(`by both ${ordinal}`, { ...rest, ...found })).toMatchObject(found);
      }
    },
  },
  {
    title: "a device that there is not, or two, or none, are refused",
    async run({ face, other, memory, opens }) {
      const before = opens();
      const [device] = await face.devices();
      const uuid = device?.uuid ?? "";
      const { device_id: _, ...rest } = memory.part();
      await expectRefusal(
        face.register("r", rest),
        "INVALID_ARGUMENT",
        invalidArgs("r", "say on which device the memory is, by device_id or by device_uuid"),
      );
      await expectRefusal(
        face.register("r", { ...rest, device_id: 1n, device_uuid: uuid }),
        "INVALID_ARGUMENT",
        invalidArgs("r", `device_uuid ${uuid} is device 0, not device_id 1; give one of them`),
      );
      for (const device_id of [99n, 2n ** 31n, 2n ** 32n, 2n ** 63n - 1n]) {
        await expectRefusalAlike(
          { face, other },
          (each) => each.register("r", { ...rest, device_id }),
          "INVALID_ARGUMENT",
          new RegExp(`: device_id ${device_id} is no device of this service; its devices: 0 \\(`),
        );
      }
      const stranger = "GPU-01234567-89ab-cdef-0123-456789abcdef";
      await expectRefusalAlike(
        { face, other },
        (each) => each.register("r", { ...rest, device_uuid: stranger }),
        "INVALID_ARGUMENT",
        new RegExp(`: device_uuid ${stranger} is no device of this service; its devices: 0 \\(${uuid}\\)`),
      );
      expect(opens()).toBe(before);
    },
  },
  {
    title: "a window begins at its offset",
    async run({ face, other, memory }) {
      await memory.write(500, Buffer.from("0123456789"));
      expect(await face.register("window", memory.part(6n, 502n))).toMatchObject({
        byte_size: 6n,
        offset: 502n,
        allocation_byte_size: memory.byteSize,
      });
      for (const each of [face, other]) expect(String(await each.readContents("window"))).toBe("234567");
      await face.writeContents("window", Buffer.from("wx"), { offset: 4n });
      expect(String(await memory.read(500, 10))).toBe("012345wx89");
      expect((await face.triton.status("window")).regions).toEqual([
        { name: "window", deviceId: "0", byteSize: "6" },
      ]);
    },
  },
  {
    title: "a window may end with the allocation, and not a byte beyond",
    async run({ face, memory, openHandles }) {
      const size = memory.byteSize;
      await face.register("whole", memory.part(size));
      await face.register("end", memory.part(1n, size - 1n));
      await face.register("all but one", memory.part(size - 1n, 1n));
      for (const name of ["whole", "end", "all but one"]) await face.unregister(name);
      const beyond = `exceed the ${size} bytes of the allocation`;
      for (const [byteSize, offset, problem] of [
        [0n, 0n, "byte_size must be at least 1"],
        [size + 1n, 0n, `byte_size ${size + 1n} exceeds the ${size} bytes of the allocation`],
        [maxUint64, 0n, `byte_size ${maxUint64} exceeds the ${size} bytes of the allocation`],
        [2n ** 53n + 1n, 1n, `offset 1 and byte_size ${2n ** 53n + 1n} together ${beyond}`],
        [1n, size, `offset ${size} and byte_size 1 together ${beyond}`],
        [size, 1n, `offset 1 and byte_size ${size} together ${beyond}`],
        [1n, maxUint64, `offset ${maxUint64} and byte_size 1 together ${beyond}`],
        [maxUint64, maxUint64, `offset ${maxUint64} and byte_size ${maxUint64} together ${beyond}`],
      ] as const) {
        const call = face.register("r", memory.part(byteSize, offset));
        await expectRefusal(call, "INVALID_ARGUMENT", invalidArgs("r", problem));
      }
      expect(openHandles()).toBe(0);
    },
  },
  {
    title: "labels are kept as they are, up to 32 of 63 and 255 bytes",
    async run({ face, other, memory }) {
      const most = {
        ...numbered(30),
        ["A1._/-".repeat(10)]: "\u00e9".repeat(127),
        ["k".repeat(63)]: "x".repeat(255),
      };
      for (const labels of [{}, { a: "" }, { "0": "=" }, most]) {
        await face.register("r", { ...memory.part(), labels });
        expect((await other.get("r")).labels).toEqual(labels);
        await face.unregister("r");
      }
    },
  },
  ...refusedLabels.map(([labels, problem], index) => ({
    title: `labels that cannot be are refused: ${problem} (${index})`,
    async run({ face, memory }: RegistryFixture) {
      const call = face.register("r", { ...memory.part(), labels });
      await expectRefusal(call, "INVALID_ARGUMENT", invalidArgs("r", problem));
      expect((await face.list()).regions).toEqual([]);
    },
  })),
];
