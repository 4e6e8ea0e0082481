import { expect } from "vitest";
import type { ListQuery, RegistryFaceClient } from "../registry-face-client.js";
import { expectRefusal, names, type RegistryCase } from "../registry-fixture.js";

/** Every page, each asked of the next face in turn. */
async function pages(faces: readonly RegistryFaceClient[], query: ListQuery): Promise<string[][]> {
  const found: string[][] = [];
  let page_token = "";
  do {
    const face = faces[found.length % faces.length] as RegistryFaceClient;
    const page = await face.list({ ...query, page_token });
    found.push(names(page.regions));
    page_token = page.next_page_token;
  } while (page_token !== "" && found.length < 100);
  return found;
}

export const listCases: readonly RegistryCase[] = [
  {
    title: "a list is in the order of the names' bytes, and its pages go on over either face",
    async run({ face, other, memory }) {
      for (const name of ["b", "\u{1f600}", "a", "\uff5e", "B", "a/b", "\u00e9"]) {
        await face.register(name, memory.part());
      }
      const sorted = ["B", "a", "a/b", "b", "\u00e9", "\uff5e", "\u{1f600}"];
      expect(await pages([face], {})).toEqual([sorted]);
      expect(await pages([face, other], { page_size: 3n })).toEqual([
        sorted.slice(0, 3),
        sorted.slice(3, 6),
        sorted.slice(6),
      ]);
      expect(await pages([other, face], { page_size: 7n })).toEqual([sorted]);
      expect(await other.list()).toEqual(await face.list());
    },
  },
  {
    title: "a list misses nothing and shows nothing twice when regions come and go between its pages",
    async run({ face, other, memory }) {
      for (const name of ["a", "b", "c", "d"]) await face.register(name, memory.part());
      const first = await face.list({ page_size: 2n });
      expect(names(first.regions)).toEqual(["a", "b"]);
      await other.unregister("b");
      await other.register("aa", memory.part());
      await other.register("bb", memory.part());
      const next = await face.list({ page_size: 2n, page_token: first.next_page_token });
      expect(names(next.regions)).toEqual(["bb", "c"]);
      expect(next.revision).toBe(first.revision + 3n);
    },
  },
  {
    title: "a list has those that match all that is asked for",
    async run({ face, other, memory }) {
      const devices = await face.devices();
      const uuidOf = (ordinal: bigint) => devices[Number(ordinal)]?.uuid ?? "";
      const last = BigInt(devices.length - 1);
      const plain = memory.part();
      await face.register("a", { ...plain, labels: { model: "resnet", stage: "in" } });
      await other.register("b", { ...plain, device_id: last, labels: { model: "bert" } });
      await face.register("c", { ...plain, device_id: last, labels: { mode: "resnet" } });
      await face.register("d", plain);
      const onFirst = last === 0n ? ["a", "b", "c", "d"] : ["a", "d"];
      const onLast = last === 0n ? ["a", "b", "c", "d"] : ["b", "c"];
      for (const [query, found] of [
        [{ owner: "anonymous" }, ["a", "b", "c", "d"]],
        [{ owner: "anonymou" }, []],
        [{ device: "0" }, onFirst],
        [{ device: String(last) }, onLast],
        [{ device: uuidOf(0n) }, onFirst],
        [{ device: uuidOf(last) }, onLast],
        [{ device: "16" }, []],
        [{ state: "ready" }, ["a", "b", "c", "d"]],
        [{ state: "orphaned" }, []],
        [{ label_prefix: "model=" }, ["a", "b"]],
        [{ label_prefix: "model=res" }, ["a"]],
        [{ label_prefix: "mode" }, ["a", "b", "c"]],
        [{ label_prefix: "stage=in" }, ["a"]],
        [{ label_prefix: "resnet" }, []],
        [
          { label_prefix: "mode", device: String(last), state: "ready", owner: "anonymous" },
          onLast.filter((name) => name !== "d"),
        ],
      ] as const) {
        expect([query, names((await face.list(query)).regions)]).toEqual([query, found]);
        expect([query, await pages([face, other], { ...query, page_size: 1n })]).toEqual([
          query,
          found.length === 0 ? [[]] : found.map((name) => [name]),
        ]);
      }
    },
  },
  {
    title: "a list that cannot be asked for is refused",
    async run({ face }) {
      for (const page_size of [1001n, 2n ** 32n - 1n]) {
        const text = `page_size must be from 1 to 1000, got ${page_size}`;
        await expectRefusal(face.list({ page_size }), "INVALID_ARGUMENT", text);
      }
      await expectRefusal(
        face.list({ page_token: "no token" }),
        "INVALID_ARGUMENT",
        "page_token is none of this service's; send the next_page_token of the page before, or none",
      );
    },
  },
];
