import { expect } from "vitest";
import { keepSecret } from "../../helpers/secrets.js";
import {
  changeOf,
  everyCall,
  expectRefusal,
  noSuchRegion,
  notOwner,
  type RegistryCase,
} from "../registry-fixture.js";
import { tokenHeaders } from "../registry-services.js";

const ended = "the session is unknown or has ended; open a new one, or send no cudashm-session";

export const sessionCases: readonly RegistryCase[] = [
  {
    title: "what is registered in a session is the session's, over both faces, and ends with it",
    async run({ face, other, as, hold, memory, openHandles }) {
      const session = await hold();
      expect(session.secret).toMatch(/^[0-9a-f]{32}$/);
      const inside = as(session.headers);
      const region = await inside.face.register("ours", memory.part());
      const owner = `session:${session.id}`;
      expect(region).toMatchObject({ owner, session: session.id });
      const handle = memory.part().raw_handle;
      await inside.other.triton.register({ name: "Triton's", handle, byteSize: 64n });
      await face.register("another's", memory.part());
      expect((await other.list({ owner })).regions).toMatchObject([
        { name: "Triton's", session: session.id, protocol: other.protocol },
        { name: "ours", session: session.id, protocol: face.protocol },
      ]);
      for (const each of [face, other, inside.face, inside.other]) {
        expect(await each.get("ours")).toEqual(region);
      }
      for (const each of [inside.face, inside.other]) {
        expect(await each.readContents("ours")).toEqual(await memory.read(0, 64));
        expect(await each.checksum("ours")).toMatchObject({ byte_size: 64n });
      }
      const refusal = ["PERMISSION_DENIED", notOwner("ours")] as const;
      await expectRefusal(face.readContents("ours"), ...refusal);
      await expectRefusal(face.checksum("ours"), ...refusal);
      await expectRefusal(face.renew("ours", { lease_ms: 5000 }), ...refusal);
      await expectRefusal(face.unregister("ours", { force: true }), ...refusal);
      // What is nobody's is everyone's.
      expect(await inside.face.renew("another's", { lease_ms: 60_000 })).toMatchObject({
        owner: "anonymous",
      });
      using watch = await face.watch();
      session.cancel();
      const gone = await watch.take(2);
      for (const name of ["ours", "Triton's"]) {
        expect(gone).toContainEqual(changeOf("unregistered", name, "session_ended", { owner }));
      }
      await expectRefusal(face.get("ours"), "NOT_FOUND", noSuchRegion("ours"));
      expect(await other.get("another's")).toMatchObject({ state: "ready" });
      expect(openHandles()).toBe(1);
    },
  },
  {
    title: "the secret of no session, or of one that has ended, is refused by every call",
    async run({ as, hold, memory }) {
      const session = await hold();
      session.cancel();
      expect(await session.ended).toMatchObject({ code: "CANCELLED" });
      const stranger = "0123456789abcdef0123456789abcdef";
      keepSecret("a session's secret", Buffer.from(stranger));
      const { face: late } = as(session.headers);
      // The service hears of the end in its own time.
      await expect
        .poll(
          () =>
            late.server().then(
              () => "OK",
              ({ code }) => code,
            ),
          { interval: 5 },
        )
        .toBe("UNAUTHENTICATED");
      for (const face of [late, as({ "cudashm-session": stranger }).face]) {
        for (const call of everyCall(face, memory)) {
          await expectRefusal(call(), "UNAUTHENTICATED", ended);
        }
        expect(await face.triton.status()).toEqual({ code: "UNAUTHENTICATED", text: ended, regions: [] });
      }
      await expectRefusal(hold({ resume: session.secret }), "UNAUTHENTICATED", ended);
    },
  },
  {
    title: "a session outlives its stream by its grace and is resumed with what it has",
    async run({ face, as, hold, memory }) {
      const first = await hold({ grace_ms: 60_000 });
      const region = await as(first.headers).face.register("r", memory.part());
      first.cancel();
      await first.ended;
      expect(await as(first.headers).other.get("r")).toEqual(region);
      const next = await hold({ resume: first.secret });
      expect([next.id, next.secret]).toEqual([first.id, first.secret]);
      expect(await face.get("r")).toEqual(region);
      const last = await hold({ resume: first.secret });
      expect(await next.ended).toMatchObject({
        code: "FAILED_PRECONDITION",
        message: "the session was taken over by another stream",
      });
      await as(last.headers).face.register("r2", memory.part());
      await expectRefusal(
        hold({ grace_ms: 86_400_001 }),
        "INVALID_ARGUMENT",
        "a session outlives its stream by 0 to 86400 seconds, got 86400.001",
      );
      last.cancel();
      await last.ended;
      expect(await face.get("r")).toEqual(region);
    },
  },
  {
    title: "a session is its opener's: what is in it is owned by his token, and no other may use its secret",
    on: "owned",
    async run({ as, hold, memory }) {
      const [alice, bob] = [as("alice"), as("bob")];
      const session = await hold({}, "alice");
      const region = await as(session.headers).face.register("r", memory.part());
      expect(region).toMatchObject({ owner: "alice", session: session.id });
      for (const { face } of [alice, as("ops")]) expect(await face.get("r")).toEqual(region);
      await expectRefusal(bob.face.get("r"), "NOT_FOUND", noSuchRegion("r"));
      for (const each of Object.values(as({ ...session.headers, ...tokenHeaders("bob") }))) {
        await expectRefusal(
          each.get("r"),
          "PERMISSION_DENIED",
          "the session was opened by another; call with the token that it was opened with",
        );
      }
      using watch = await alice.other.watch();
      session.cancel();
      expect(await watch.take(1)).toEqual([
        changeOf("unregistered", "r", "session_ended", { generation: region.generation, owner: "alice" }),
      ]);
      await expectRefusal(alice.face.get("r"), "NOT_FOUND", noSuchRegion("r"));
    },
  },
];
