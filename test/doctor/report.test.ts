import { expect, test } from "vitest";
import { type Finding, ok, problem } from "../../src/doctor/finding.js";
import { createReport, reportJson, reportText } from "../../src/doctor/report.js";

const good = ok("kernel", "Linux 6.1", { release: "6.1", pidfd: true });
const odd = problem("WARN", "c_library", "the C library is musl", "use glibc", { name: "musl" });
const bad = problem("FAIL", "ipc_self_test", "device 0: refused", "mend it", { ordinal: 0 });

test.each<[string, readonly Finding[]]>([
  ["OK", []],
  ["OK", [good]],
  ["WARN", [good, odd]],
  ["FAIL", [bad, good, odd]],
])("its status is the worst of its findings: %s", (status, findings) => {
  expect(createReport("1.2.3", findings).status).toBe(status);
});

test("its JSON is one line, with no advice where nothing is to be done", () => {
  const text = reportJson(createReport("1.2.3", [good, odd]));
  expect(text.endsWith("}\n")).toBe(true);
  expect(text.split("\n")).toHaveLength(2);
  expect(JSON.parse(text)).toEqual({
    schema: 1,
    version: "1.2.3",
    status: "WARN",
    findings: [
      { check: "kernel", status: "OK", text: "Linux 6.1", facts: { release: "6.1", pidfd: true } },
      {
        check: "c_library",
        status: "WARN",
        text: "the C library is musl",
        advice: "use glibc",
        facts: { name: "musl" },
      },
    ],
  });
});

test("its text is aligned, with what to do below each finding and the sum at the end", () => {
  expect(reportText(createReport("1.2.3", [good, odd, bad]))).toBe(
    [
      "cudashm doctor 1.2.3",
      "",
      "OK    kernel         Linux 6.1",
      "WARN  c library      the C library is musl",
      "                     -> use glibc",
      "FAIL  ipc self test  device 0: refused",
      "                     -> mend it",
      "",
      "1 OK, 1 WARN, 1 FAIL",
      "",
    ].join("\n"),
  );
});

test("its text is at most 100 columns wide, long words excepted, and loses no word", () => {
  const path = `/${"long/".repeat(30)}`;
  const words = "one two three four five six seven eight nine ten ".repeat(6).trim();
  const text = reportText(createReport("1.2.3", [problem("WARN", "driver", `${words} ${path}`, words)]));
  const lines = text.split("\n");
  for (const line of lines) if (!line.includes(path)) expect(line.length).toBeLessThanOrEqual(100);
  expect(lines.some((line) => line.length > 90)).toBe(true);
  const told = lines.slice(2, -3).map((line) => line.replace(/^(WARN {2}driver)?\s*(-> )?/, ""));
  expect(told.join(" ")).toBe(`${words} ${path} ${words}`);
});
