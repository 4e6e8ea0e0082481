import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { keepSecret } from "../helpers/secrets.js";
import type { FaceClient, Outcome, ParityCode, SentHeaders } from "./face-client.js";
import type { ExportedMemory } from "./parity-cases.js";

interface AccessFixture {
  /** The face under test, called with these headers. */
  as(headers?: SentHeaders): FaceClient;
  /** Memory of another process; equal sizes are the same memory. */
  allocate(byteSize: bigint): Promise<ExportedMemory>;
  /** Owners of the regions registered so far, as the log has them. */
  loggedOwners(): string[];
}

export interface AccessCase {
  readonly title: string;
  /** Arguments of the service; what they name is put into `folder`. */
  args(folder: string): readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  run(fixture: AccessFixture): Promise<void>;
}

const ok: Outcome = { code: "OK", text: "", regions: [] };
const refused = (code: ParityCode, text: string): Outcome => ({ code, text, regions: [] });
const tokenOf = (name: string) => `${name}-s3cret-token`;
const bearer = (token: string) => {
  keepSecret("a token", Buffer.from(token));
  return { authorization: `Bearer ${token}` };
};

/** The arguments for a token file with one token for each name. */
function tokenFile(folder: string, ...names: string[]): string {
  const path = join(folder, "tokens");
  const hash = (name: string) => createHash("sha256").update(tokenOf(name)).digest("hex");
  writeFileSync(path, names.map((name) => `${name}: ${hash(name)}\n`).join(""), { mode: 0o600 });
  return `--token-file=${path}`;
}

const restriction = "shared-memory,model-config:Admin-Key=s3cret";
const restrictedText = {
  http: refused("PERMISSION_DENIED", "This API is restricted, expecting header 'Admin-Key'"),
  grpc: refused(
    "UNAVAILABLE",
    "This protocol is restricted, expecting header 'triton-grpc-protocol-admin-key'",
  ),
};
const restrictedKey = { http: "Admin-Key", grpc: "triton-grpc-protocol-admin-key" };

/** What a service with each of these options promises on both faces. */
export const accessCases: readonly AccessCase[] = [
  {
    title: "a restricted category is answered to those who bring its header, others to all",
    args: () => [`--http-restricted-api=${restriction}`, `--grpc-restricted-protocol=${restriction}`],
    async run({ as, allocate }) {
      const { handle } = await allocate(4096n);
      const face = as();
      const expected = restrictedText[face.protocol];
      expect(await face.register({ name: "r", handle, byteSize: 64n })).toEqual(expected);
      expect(await face.status()).toEqual(expected);
      expect(await face.unregister()).toEqual(expected);
      expect(await face.systemStatus()).toEqual(expected);
      expect([await face.live(), await face.ready()]).toEqual([true, true]);
      expect((await face.metadata()).name).toBe("cudashm");
      expect(await as({ [restrictedKey[face.protocol]]: "S3cret" }).status()).toEqual(expected);
      const trusted = as({ [restrictedKey[face.protocol]]: "s3cret" });
      expect(await trusted.register({ name: "r", handle, byteSize: 64n })).toEqual(ok);
      expect(await trusted.unregister("r")).toEqual(ok);
    },
  },
  {
    title: "where tokens are wanted, all but health wants one, and its name owns what it registers",
    args: (folder) => [tokenFile(folder, "alice", "bob")],
    async run({ as, allocate, loggedOwners }) {
      const { handle } = await allocate(4096n);
      const missing = refused(
        "UNAUTHENTICATED",
        "this service wants a token; send it as 'authorization: Bearer <token>'",
      );
      for (const headers of [{}, { authorization: "Basic YWxpY2U6eA==" }]) {
        expect(await as(headers).register({ name: "r", handle, byteSize: 64n })).toEqual(missing);
        expect(await as(headers).status()).toEqual(missing);
        expect(await as(headers).unregister()).toEqual(missing);
        expect([await as(headers).live(), await as(headers).ready()]).toEqual([true, true]);
      }
      expect(await as(bearer("alice-other-token")).status()).toEqual(
        refused(
          "UNAUTHENTICATED",
          "the token is not one of this service's; ask whoever runs it for one that is in its --token-file",
        ),
      );
      for (const name of ["alice", "bob"]) {
        const face = as(bearer(tokenOf(name)));
        expect(await face.register({ name: `of ${name}`, handle, byteSize: 64n })).toEqual(ok);
      }
      expect(await as(bearer(tokenOf("alice"))).unregister()).toEqual(ok);
      expect(loggedOwners()).toEqual(["alice", "bob"]);
    },
  },
  {
    title: "a call in a session that there is not is refused, health excepted",
    args: () => ["--log-verbose=1"],
    async run({ as, allocate }) {
      const { handle } = await allocate(4096n);
      const face = as({ "cudashm-session": "s3cret-of-no-session" });
      const expected = refused(
        "UNAUTHENTICATED",
        "the session is unknown or has ended; open a new one, or send no cudashm-session",
      );
      expect(await face.register({ name: "r", handle, byteSize: 64n })).toEqual(expected);
      expect(await face.status()).toEqual(expected);
      expect(await face.unregister()).toEqual(expected);
      expect(await face.systemStatus()).toEqual(expected);
      expect([await face.live(), await face.ready()]).toEqual([true, true]);
      expect(await as().status()).toEqual(ok);
    },
  },
  {
    title: "a limit of regions is told, and has room again after an unregister",
    args: () => ["--max-regions=1"],
    async run({ as, allocate }) {
      const { handle } = await allocate(4096n);
      const face = as();
      expect(await face.register({ name: "a", handle, byteSize: 64n })).toEqual(ok);
      expect(await face.register({ name: "b", handle, byteSize: 64n })).toEqual(
        refused(
          "RESOURCE_EXHAUSTED",
          "failed to register shared memory region 'b': there are as many regions as this service takes (1, --max-regions); unregister some first",
        ),
      );
      expect(await face.unregister("a")).toEqual(ok);
      expect(await face.register({ name: "b", handle, byteSize: 64n })).toEqual(ok);
      expect(await face.unregister("b")).toEqual(ok);
    },
  },
  {
    title: "a limit of bytes a device counts allocations, shared ones once",
    args: () => ["--max-device-bytes=10000"],
    async run({ as, allocate }) {
      const [large, small] = [await allocate(8192n), await allocate(4096n)];
      const face = as();
      expect(await face.register({ name: "a", handle: large.handle, byteSize: 1n })).toEqual(ok);
      expect(await face.register({ name: "b", handle: large.handle, byteSize: 8192n })).toEqual(ok);
      expect(await face.register({ name: "c", handle: small.handle, byteSize: 1n })).toEqual(
        refused(
          "RESOURCE_EXHAUSTED",
          "failed to register shared memory region 'c': its allocation of 4096 bytes would exceed the 10000 that may be mapped on device 0 (--max-device-bytes); unregister regions on that device first",
        ),
      );
      expect(await face.unregister()).toEqual(ok);
      expect(await face.register({ name: "c", handle: small.handle, byteSize: 1n })).toEqual(ok);
      expect(await face.unregister("c")).toEqual(ok);
    },
  },
  {
    title: "a limit of bytes an owner counts each token's name by itself",
    args: (folder) => ["--max-owner-bytes=100", tokenFile(folder, "alice", "bob")],
    async run({ as, allocate }) {
      const { handle } = await allocate(4096n);
      const [alice, bob] = [as(bearer(tokenOf("alice"))), as(bearer(tokenOf("bob")))];
      expect(await alice.register({ name: "a", handle, byteSize: 100n })).toEqual(ok);
      expect(await alice.register({ name: "b", handle, byteSize: 1n })).toEqual(
        refused(
          "RESOURCE_EXHAUSTED",
          "failed to register shared memory region 'b': the regions of 'alice' have 100 bytes; with the 1 of this one they would exceed the 100 that one client may register (--max-owner-bytes); unregister some first",
        ),
      );
      expect(await bob.register({ name: "b", handle, byteSize: 100n })).toEqual(ok);
      expect(await bob.unregister()).toEqual(ok);
    },
  },
  {
    title: "a limit of requests in flight is told while one is being answered, and not for health",
    args: () => ["--max-requests-in-flight=1"],
    variables: { CUDASHM_EMULATED_DELAYS: "cuIpcOpenMemHandle_v2=1000" },
    async run({ as, allocate }) {
      const { handle } = await allocate(4096n);
      const [face, other] = [as(), as()];
      const slow = face.register({ name: "a", handle, byteSize: 64n });
      await expect
        .poll(() => other.status())
        .toEqual(
          refused(
            "RESOURCE_EXHAUSTED",
            "as many requests are being answered as this service takes at once (1, --max-requests-in-flight); try again later",
          ),
        );
      expect([await other.live(), await other.ready()]).toEqual([true, true]);
      expect(await slow).toEqual(ok);
      expect(await other.unregister("a")).toEqual(ok);
    },
  },
];
