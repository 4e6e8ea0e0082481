import { expect } from "vitest";
import type { ExporterView } from "../registry-face-client.js";
import {
  changeOf,
  expectRefusal,
  expectRefusalAlike,
  names,
  noSuchRegion,
  type RegistryCase,
  type RegistryFixture,
  taken,
} from "../registry-fixture.js";

const facts = ["pid", "start_time", "boot_id", "pid_namespace"] as const;

/** What is claimed instead of the truth, and what the refusal says of it. */
const lies: readonly [keyof ExporterView, (truth: ExporterView) => object, RegExp][] = [
  // The largest number that Linux gives is one less.
  ["pid", () => ({ pid: 4_194_304n }), /exporter\.pid is 4194304 and there is no such process/],
  [
    "start_time",
    ({ start_time }) => ({ start_time: start_time + 1n }),
    /exporter\.start_time is \d+ and process \d+ was started at \d+: it is another process/,
  ],
  [
    "boot_id",
    () => ({ boot_id: "01234567-89ab-cdef-0123-456789abcdef" }),
    /exporter\.boot_id is '01234567-.*' and this machine's is '.+': the exporter is of another machine/,
  ],
  [
    "pid_namespace",
    ({ pid_namespace }) => ({ pid_namespace: pid_namespace + 1n }),
    /exporter\.pid_namespace is \d+ and this service's is \d+/,
  ],
];

export const exporterCases: readonly RegistryCase[] = [
  ...facts.map((fact) => ({
    title: `an exporter without its ${fact} is refused`,
    async run({ face, memory, opens }: RegistryFixture) {
      const before = opens();
      const { [fact]: _, ...exporter } = memory.exporter;
      // Over HTTP it is missing; over gRPC it is zero, or empty.
      const text = face.protocol === "http" ? `'exporter.${fact}' is missing` : `the exporter's ${fact}`;
      await expectRefusal(
        face.register("r", { ...memory.part(), exporter }),
        "INVALID_ARGUMENT",
        new RegExp(text),
      );
      expect(opens()).toBe(before);
    },
  })),
  ...lies.map(([fact, lie, text]) => ({
    title: `an exporter whose ${fact} is not so is refused, and told what is`,
    async run({ face, other, memory, opens }: RegistryFixture) {
      const before = opens();
      const exporter = { ...memory.exporter, ...lie(memory.exporter) };
      await expectRefusalAlike(
        { face, other },
        (each) => each.register("r", { ...memory.part(), exporter }),
        "FAILED_PRECONDITION",
        text,
      );
      expect(opens()).toBe(before);
    },
  })),
  {
    title: "a region outlives its exporter as an orphan, which can be seen and read",
    async run({ face, other, memory, startMortal }) {
      const mortal = await startMortal();
      const registration = { ...memory.part(), exporter: mortal.exporter, lease_ms: 60_000 };
      const region = await face.register("r", registration);
      await face.register("another's", { ...memory.part(), exporter: memory.exporter });
      using watch = await face.watch();
      using otherWatch = await other.watch();
      await mortal.end();
      const orphaned = { state: "orphaned", generation: region.generation };
      const expected = [changeOf("orphaned", "r", "exporter_exited", orphaned)];
      expect(await watch.take(1)).toEqual(expected);
      expect(await otherWatch.take(1)).toEqual(expected);
      for (const each of [face, other]) {
        const shown = { ...region, state: "orphaned", reason: "exporter_exited" };
        expect(await each.get("r")).toEqual(shown);
        expect((await each.list({ state: "orphaned" })).regions).toEqual([shown]);
        expect(names((await each.list({ state: "ready" })).regions)).toEqual(["another's"]);
      }
      expect(await face.readContents("r")).toEqual(await memory.read(0, 64));
      expect(await other.renew("r")).toMatchObject({ state: "orphaned", lease_ms: 60_000 });
      await expectRefusal(face.register("r", registration), "ALREADY_EXISTS", taken("r"));
    },
  },
  {
    title: "an orphan is unregistered when its grace is over",
    on: "strict",
    async run({ face, other, memory, startMortal, openHandles }) {
      const mortal = await startMortal();
      const { generation } = await face.register("r", { ...memory.part(), exporter: mortal.exporter });
      using watch = await other.watch({ name: "r" });
      await mortal.end();
      const reason = "exporter_exited";
      expect(await watch.take(2)).toEqual([
        changeOf("orphaned", "r", reason, { generation, owner: "anonymous" }),
        changeOf("unregistered", "r", reason, { generation, owner: "anonymous" }),
      ]);
      for (const each of [face, other]) await expectRefusal(each.get("r"), "NOT_FOUND", noSuchRegion("r"));
      expect(openHandles()).toBe(0);
    },
  },
];
