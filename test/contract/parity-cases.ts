import { expect } from "vitest";
import type { FaceClient, Outcome, ParityCode } from "./face-client.js";

/** Memory of another process, as the cases need it. */
export interface ExportedMemory {
  readonly handle: Uint8Array;
  readonly byteSize: bigint;
}

interface ParityFixture {
  /** The face under test. */
  readonly face: FaceClient;
  /** The other face of the same service. */
  readonly other: FaceClient;
  /** Memory of another process; equal sizes are the same memory. */
  allocate(byteSize: bigint): Promise<ExportedMemory>;
  /** A handle whose exporter was killed. */
  staleHandle(): Promise<Uint8Array>;
}

export interface ParityCase {
  readonly title: string;
  run(fixture: ParityFixture): Promise<void>;
}

const KiB = 1024n;
const largest = 2n ** 64n - 1n;

const listed = (name: string, byteSize: bigint) => ({ name, deviceId: "0", byteSize: String(byteSize) });

function expectRefusal(outcome: Outcome, code: ParityCode, text: string | RegExp): void {
  expect(outcome).toMatchObject({
    code,
    text: typeof text === "string" ? text : expect.stringMatching(text),
  });
}

function expectOk(outcome: Outcome): void {
  expect(outcome).toMatchObject({ code: "OK", text: "" });
}

/** A refused argument: over HTTP and gRPC the text starts the same way, then says what was wrong. */
const invalidArgs = (name: string, detail: string) =>
  new RegExp(`^failed to register shared memory region '${literally(name)}': invalid args: .*${detail}`, "s");

const literally = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Names that must reach the registry unchanged through both faces. */
const ordinaryNames = [
  "my region",
  "a/b",
  "100%",
  "%41",
  "a%2541",
  "a%20b",
  "入力テンソル",
  "caf\u00e9",
  "cafe\u0301",
  "__proto__",
  "constructor",
  "toString",
  "InceptionV3/Predictions/Softmax",
  "a?b#c",
  "'\"\\",
  "\u{1f600}",
  "\uff5e",
  "x".repeat(1024),
];

const refusedNames: readonly [string, RegExp][] = [
  [".", /not allowed/],
  ["..", /not allowed/],
  ["a\0b", /control character/],
  ["a\nb", /control character/],
  ["x".repeat(1025), /1025 bytes/],
  ["é".repeat(513), /1026 bytes/],
];

/** What both faces promise, one case each; the suite runs every case through HTTP and through gRPC. */
export const parityCases: readonly ParityCase[] = [
  {
    title: "registers, lists and unregisters a region",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      expectOk(await face.register({ name: "r", handle, byteSize: 4n * KiB }));
      expect((await face.status()).regions).toEqual([listed("r", 4n * KiB)]);
      expect((await face.status("r")).regions).toEqual([listed("r", 4n * KiB)]);
      expectOk(await face.unregister("r"));
      expect((await face.status()).regions).toEqual([]);
    },
  },
  {
    title: "shows a region of one face on the other",
    async run({ face, other, allocate }) {
      const { handle } = await allocate(4n * KiB);
      expectOk(await face.register({ name: "r", handle, byteSize: 64n }));
      expect((await other.status("r")).regions).toEqual([listed("r", 64n)]);
      expectOk(await other.unregister("r"));
      expectRefusal(await face.status("r"), "NOT_FOUND", "Unable to find cuda shared memory region: 'r'");
    },
  },
  {
    title: "refuses a name that is taken, and keeps the first region",
    async run({ face, allocate }) {
      const first = await allocate(4n * KiB);
      const second = await allocate(8n * KiB);
      expectOk(await face.register({ name: "r", handle: first.handle, byteSize: 64n }));
      expectRefusal(
        await face.register({ name: "r", handle: second.handle, byteSize: 128n }),
        "ALREADY_EXISTS",
        "shared memory region 'r' already in manager",
      );
      expect((await face.status()).regions).toEqual([listed("r", 64n)]);
    },
  },
  {
    title: "lets one of ten concurrent registers of a name win",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, () => face.register({ name: "r", handle, byteSize: 64n })),
      );
      const codes = outcomes.map((outcome) => outcome.code).sort();
      expect(codes).toEqual([...Array(9).fill("ALREADY_EXISTS"), "OK"]);
    },
  },
  {
    title: "accepts a region as large as its allocation",
    async run({ face, allocate }) {
      const { handle } = await allocate(5000n);
      expectOk(await face.register({ name: "r", handle, byteSize: 5000n }));
    },
  },
  ...[5001n, 2n ** 53n + 1n, largest].map((byteSize) => ({
    title: `refuses ${byteSize} bytes of an allocation of 5000`,
    async run({ face, allocate }: ParityFixture) {
      const { handle } = await allocate(5000n);
      const outcome = await face.register({ name: "r", handle, byteSize });
      expectRefusal(outcome, "INVALID_ARGUMENT", invalidArgs("r", `${byteSize}.*5000`));
      expect((await face.status()).regions).toEqual([]);
    },
  })),
  {
    title: "refuses a region of no bytes",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      expectRefusal(
        await face.register({ name: "r", handle, byteSize: 0n }),
        "INVALID_ARGUMENT",
        invalidArgs("r", "byte_size must be at least 1"),
      );
    },
  },
  ...[99n, 2n ** 31n, 2n ** 32n, 2n ** 63n - 1n].map((deviceId) => ({
    title: `refuses device ${deviceId} and names the devices there are`,
    async run({ face, allocate }: ParityFixture) {
      const { handle } = await allocate(4n * KiB);
      const outcome = await face.register({ name: "r", handle, deviceId, byteSize: 64n });
      expectRefusal(outcome, "INVALID_ARGUMENT", invalidArgs("r", `${deviceId}.*0`));
    },
  })),
  ...[0, 1, 63, 65, 128].map((length) => ({
    title: `refuses a handle of ${length} bytes`,
    async run({ face }: ParityFixture) {
      const outcome = await face.register({ name: "r", handle: new Uint8Array(length), byteSize: 64n });
      const text =
        face.protocol === "http"
          ? /^'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t/
          : invalidArgs("r", `${length}`);
      expectRefusal(outcome, "INVALID_ARGUMENT", text);
    },
  })),
  {
    title: "refuses 64 bytes that are no handle, with the driver's error and a cause",
    async run({ face }) {
      for (const fill of [0, 0xff]) {
        const handle = new Uint8Array(64).fill(fill);
        const outcome = await face.register({ name: "r", handle, byteSize: 64n });
        expectRefusal(outcome, "INVALID_ARGUMENT", invalidArgs("r", "CUDA_ERROR_INVALID_VALUE \\(1\\): .+"));
      }
    },
  },
  {
    title: "refuses the handle of an exporter that is gone",
    async run({ face, staleHandle }) {
      const outcome = await face.register({ name: "r", handle: await staleHandle(), byteSize: 64n });
      expectRefusal(outcome, "INVALID_ARGUMENT", invalidArgs("r", "CUDA_ERROR_INVALID_VALUE \\(1\\): .+"));
    },
  },
  {
    title: "keeps a shared allocation until its last name is unregistered",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      expectOk(await face.register({ name: "one", handle, byteSize: 64n }));
      expectOk(await face.register({ name: "two", handle, byteSize: 128n }));
      expectOk(await face.unregister("one"));
      expect((await face.status()).regions).toEqual([listed("two", 128n)]);
      expectOk(await face.register({ name: "one", handle, byteSize: 64n }));
      expectOk(await face.unregister());
      expect((await face.status()).regions).toEqual([]);
    },
  },
  ...ordinaryNames.map((name) => ({
    title: `knows the same region by the name ${JSON.stringify(shortened(name))} on both faces`,
    async run({ face, other, allocate }: ParityFixture) {
      const { handle } = await allocate(4n * KiB);
      expectOk(await face.register({ name, handle, byteSize: 64n }));
      expect((await other.status(name)).regions).toEqual([listed(name, 64n)]);
      expect((await face.status()).regions).toEqual([listed(name, 64n)]);
      expectOk(await other.unregister(name));
      expectRefusal(
        await face.status(name),
        "NOT_FOUND",
        `Unable to find cuda shared memory region: '${name}'`,
      );
    },
  })),
  ...refusedNames.map(([name, reason]) => ({
    title: `refuses the name ${JSON.stringify(shortened(name))}`,
    async run({ face, allocate }: ParityFixture) {
      const { handle } = await allocate(4n * KiB);
      const outcome = await face.register({ name, handle, byteSize: 64n });
      expectRefusal(outcome, "INVALID_ARGUMENT", reason);
      expect(outcome.text).toMatch(/^failed to register shared memory region.*invalid args/s);
      expect((await face.status()).regions).toEqual([]);
    },
  })),
  ...refusedNames.map(([name, reason]) => ({
    title: `refuses the name ${JSON.stringify(shortened(name))} for status and unregister, and touches nothing`,
    async run({ face, allocate }: ParityFixture) {
      const { handle } = await allocate(4n * KiB);
      expectOk(await face.register({ name: "r", handle, byteSize: 64n }));
      expectRefusal(await face.status(name), "INVALID_ARGUMENT", reason);
      expectRefusal(await face.unregister(name), "INVALID_ARGUMENT", reason);
      expect((await face.status()).regions).toEqual([listed("r", 64n)]);
    },
  })),
  {
    title: "lists regions in the order of their names' bytes",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      const names = ["b", "\u{1f600}", "a", "\uff5e", "B", "ab"];
      for (const name of names) expectOk(await face.register({ name, handle, byteSize: 64n }));
      const sorted = ["B", "a", "ab", "b", "\uff5e", "\u{1f600}"];
      expect((await face.status()).regions.map((region) => region.name)).toEqual(sorted);
    },
  },
  {
    title: "does nothing when an unknown name is unregistered",
    async run({ face }) {
      expectOk(await face.unregister("nobody"));
    },
  },
  {
    title: "says that a region is unknown",
    async run({ face }) {
      expectRefusal(await face.status("nobody"), "NOT_FOUND", /^Unable to find cuda .* region: 'nobody'$/);
    },
  },
  {
    title: "unregisters everything, and again when nothing is left",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      for (const name of ["a", "b", "c"]) expectOk(await face.register({ name, handle, byteSize: 64n }));
      expectOk(await face.unregister());
      expectOk(await face.unregister());
      expect((await face.status()).regions).toEqual([]);
    },
  },
  {
    title: "answers the system shared memory calls that clients make first",
    async run({ face, allocate }) {
      const { handle } = await allocate(4n * KiB);
      expectOk(await face.register({ name: "r", handle, byteSize: 64n }));
      expect(await face.systemStatus()).toEqual({ code: "OK", text: "", regions: [] });
      expectOk(await face.systemUnregister());
      expectOk(await face.systemUnregister("r"));
      expect((await face.status()).regions).toEqual([listed("r", 64n)]);
      expectRefusal(
        await face.systemStatus("s"),
        "NOT_FOUND",
        "Unable to find system shared memory region: 's'",
      );
      expectRefusal(await face.systemRegister("s"), "UNIMPLEMENTED", /CUDA shared memory only/);
    },
  },
  {
    title: "is alive, is ready and says what it is",
    async run({ face }) {
      expect(await face.live()).toBe(true);
      expect(await face.ready()).toBe(true);
      const { name, version, extensions } = await face.metadata();
      expect(name).toBe("cudashm");
      expect(version).toMatch(/^\d+\.\d+\.\d+$/);
      expect(extensions).toContain("cuda_shared_memory");
    },
  },
];

function shortened(name: string): string {
  return name.length > 40 ? `${name.slice(0, 20)}... (${name.length} characters)` : name;
}
