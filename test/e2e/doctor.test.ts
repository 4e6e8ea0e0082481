import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { LineProcess } from "../../src/cli/line-process.js";
import { runCommand, startCommand, startExporter, startService, testDriver } from "../helpers/cudashm.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";
import { request } from "../helpers/http.js";

interface Report {
  readonly schema: number;
  readonly status: string;
  readonly findings: readonly {
    readonly check: string;
    readonly status: string;
    readonly text: string;
    readonly advice?: string;
    readonly facts: Readonly<Record<string, unknown>>;
  }[];
}

async function report(args: readonly string[], variables: Record<string, string> = {}) {
  const { code, lines, errorText } = await runCommand(["doctor", "--json", ...args], variables);
  expect(lines).toHaveLength(1);
  const whole = JSON.parse(lines[0] ?? "") as Report;
  return {
    code,
    whole,
    errorText,
    of: (check: string) => whole.findings.filter((found) => found.check === check),
  };
}

/** Processes with this text in their environment. */
function processesWith(mark: string): string[] {
  return readdirSync("/proc").filter(
    (pid) => /^\d+$/.test(pid) && read(`/proc/${pid}/environ`).includes(mark),
  );
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", process.execPath];
// Only root can become another user, who must be able to read this tree.
const nobodyMayRunIt = spawnSync("setpriv", [...asNobody, "--check", main]).status === 0;

const patience = { timeout: 15_000, interval: 20 };

test("on a machine where memory can be shared it proves so, for people and for machines, with code 0", async () => {
  const { code, lines, errorText } = await runCommand(["doctor", `--driver=${testDriver}`]);
  expect({ code, errorText }).toEqual({ code: 0, errorText: "" });
  expect(lines[0]).toMatch(/^cudashm doctor \d+\.\d+\.\d+$/);
  expect(lines.join("\n")).toMatch(/^OK {4}ipc self test +device 0: another process's memory was opened/m);
  expect(lines.at(-1)).toMatch(/^\d+ OK, \d+ WARN, 0 FAIL$/);
  const { code: jsonCode, whole } = await report([`--driver=${testDriver}`]);
  expect([jsonCode, whole.schema]).toEqual([0, 1]);
  expect(whole.findings.filter(({ status }) => status === "FAIL")).toEqual([]);
});

describe.skipIf(testDriver !== "emulated")("on the emulated driver", () => {
  const emulated = ["--driver=emulated"];

  test("every device is told and tested by itself", async () => {
    const { code, of } = await report(emulated, {
      CUDASHM_EMULATED_DEVICE_COUNT: "3",
      CUDA_VISIBLE_DEVICES: "2,0",
      CUDASHM_EMULATED_MEMORY_BYTES: String(2 ** 30),
    });
    expect(code).toBe(0);
    expect(
      of("device").map(({ facts }) => [facts.ordinal, facts.pci_bus_id, facts.total_bytes, facts.free_bytes]),
    ).toEqual([
      [0, "0000:03:00.0", 2 ** 30, 2 ** 30],
      [1, "0000:01:00.0", 2 ** 30, 2 ** 30],
    ]);
    expect(of("ipc_self_test").map(({ status, facts }) => [status, facts.ordinal])).toEqual([
      ["OK", 0],
      ["OK", 1],
    ]);
    expect(of("visible_devices")[0]).toMatchObject({ status: "OK", facts: { CUDA_VISIBLE_DEVICES: "2,0" } });
  });

  test("a platform without IPC fails the self-test and is told by the device", async () => {
    const { code, whole, of } = await report(emulated, { CUDASHM_EMULATED_NO_IPC: "1" });
    expect([code, whole.status]).toEqual([1, "FAIL"]);
    expect(of("device")[0]).toMatchObject({ status: "WARN", facts: { ipc_events: false } });
    expect(of("ipc_self_test")[0]?.status).toBe("FAIL");
    expect(of("ipc_self_test")[0]?.text).toMatch(/could not allocate: .*CUDA_ERROR_NOT_SUPPORTED \(801\)/);
  });

  test("memory of another user fails the self-test, with the reason", async () => {
    const { code, of } = await report(emulated, { CUDASHM_EMULATED_FAULTS: "cuIpcOpenMemHandle_v2=800" });
    expect(code).toBe(1);
    expect(of("ipc_self_test")[0]?.text).toMatch(/CUDA_ERROR_NOT_PERMITTED \(800\): .*equal uids/);
  });

  test("no device is a failing driver, with no device and no self-test to tell of", async () => {
    const { code, of } = await report(emulated, { CUDASHM_EMULATED_DEVICE_COUNT: "0" });
    expect(code).toBe(1);
    expect(of("driver")[0]).toMatchObject({ status: "FAIL", facts: { kind: null, library_path: null } });
    expect(of("driver")[0]?.text).toContain("CUDA_ERROR_NO_DEVICE (100)");
    expect([of("device"), of("ipc_self_test")]).toEqual([[], []]);
  });

  test("a device whose attributes are refused is told, and the self-test still made", async () => {
    const { code, of } = await report(emulated, { CUDASHM_EMULATED_FAULTS: "cuDeviceGetAttribute=101" });
    expect(code).toBe(1);
    expect(of("device")[0]).toMatchObject({ status: "FAIL", facts: { ordinal: 0 } });
    expect(of("device")[0]?.text).toMatch(
      /^device 0: cuDeviceGetAttribute: CUDA_ERROR_INVALID_DEVICE \(101\)/,
    );
    expect(of("ipc_self_test")[0]?.status).toBe("OK");
  });

  test("a driver that hangs is told when the time is over, and the doctor ends", async () => {
    const { code, of } = await report([...emulated, "--timeout-secs=1"], {
      CUDASHM_EMULATED_DELAYS: "cuInit=600000",
    });
    expect(code).toBe(1);
    expect(of("driver")[0]).toMatchObject({ status: "FAIL", advice: expect.stringContaining("dmesg") });
    expect(of("driver")[0]?.text).toBe("the driver gave no answer within 1 s (--timeout-secs)");
  });

  test("an open that hangs fails the self-test, and leaves no exporter behind", async () => {
    const { code, of } = await report([...emulated, "--timeout-secs=1"], {
      CUDASHM_EMULATED_DELAYS: "cuIpcOpenMemHandle_v2=600000",
      MARK_OF_THIS_TEST: "doctor-open-hangs",
    });
    expect(code).toBe(1);
    expect(of("device")[0]?.status).toBe("OK");
    expect(of("ipc_self_test")[0]?.text).toBe("device 0: no answer within 1 s (--timeout-secs)");
    await vi.waitFor(() => expect(processesWith("doctor-open-hangs")).toEqual([]), patience);
  });

  test("an exporter that hangs is ended", async () => {
    const { code, of } = await report([...emulated, "--timeout-secs=1"], {
      // The doctor itself allocates nothing.
      CUDASHM_EMULATED_DELAYS: "cuMemAlloc_v2=600000",
      MARK_OF_THIS_TEST: "doctor-exporter-hangs",
    });
    expect(code).toBe(1);
    expect(of("ipc_self_test")[0]?.status).toBe("FAIL");
    await vi.waitFor(() => expect(processesWith("doctor-exporter-hangs")).toEqual([]), patience);
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s ends a doctor that waits, with code 1 and no report",
    async (signal) => {
      using copy = emulatedCopy();
      await using doctor = startCommand(["doctor", "--json", ...emulated, `--driver-library=${copy.path}`], {
        CUDASHM_EMULATED_DELAYS: "cuInit=600000",
        CUDASHM_EMULATED_LOG: copy.log.variables.CUDASHM_EMULATED_LOG,
      });
      // Signals are handled from before the library is mapped on.
      await vi.waitFor(() => expect(read(`/proc/${doctor.pid}/maps`)).toContain(copy.path), patience);
      expect(await doctor.kill(signal)).toEqual({ code: 1, signal: null });
      const lines: string[] = [];
      for await (const line of doctor.lines()) lines.push(line);
      expect(lines).toEqual([]);
    },
  );

  test.skipIf(!nobodyMayRunIt)("a user without rights is told, and can share among his own", async () => {
    const doctor = new LineProcess("setpriv", [...asNobody, main, "doctor", "--json", ...emulated]);
    const whole = JSON.parse(await doctor.nextLine()) as Report;
    expect(await doctor.exit).toEqual({ code: 0, signal: null });
    const user = whole.findings.find(({ check }) => check === "user");
    expect(user).toMatchObject({ status: "OK", facts: { uid: 65534, cap_sys_ptrace: false } });
    expect(user?.text).toContain("exporters must run as uid 65534 too");
    expect(whole.findings.find(({ check }) => check === "ipc_self_test")?.status).toBe("OK");
  });

  test("a library that passes for NVIDIA's is told as such, and its devices' order", async () => {
    using copy = emulatedCopy({}, true);
    const variables = { CUDASHM_EMULATED_DEVICE_COUNT: "2" };
    const { code, whole, of } = await report(["--driver=cuda", `--driver-library=${copy.path}`], variables);
    expect([code, whole.status]).toEqual([1, "FAIL"]);
    expect(of("driver")[0]).toMatchObject({
      status: "OK",
      facts: { kind: "cuda", library_path: copy.path, cuda_version: "12.8" },
    });
    expect(of("device_order")[0]?.status).toBe("WARN");
    // Its handles give it away.
    for (const { text } of of("ipc_self_test"))
      expect(text).toContain("the handle is from the emulated driver");
    expect(of("ipc_self_test")).toHaveLength(2);
  });
});

test("--driver auto where there is no other warns of the emulated driver, and tests on it", async () => {
  const { code, whole, of } = await report(["--driver=auto", "--driver-library=/nowhere/libcuda.so.1"]);
  expect([code, whole.status]).toEqual([0, "WARN"]);
  expect(of("driver")[0]).toMatchObject({ status: "WARN", facts: { kind: "emulated" } });
  expect(of("driver")[0]?.text).toContain("/nowhere/libcuda.so.1");
  expect(of("ipc_self_test")[0]?.status).toBe("OK");
});

test("--driver cuda where there is none fails, with what to do", async () => {
  const { code, of } = await report(["--driver=cuda", "--driver-library=/nowhere/libcuda.so.1"]);
  expect(code).toBe(1);
  expect(of("driver")[0]).toMatchObject({ status: "FAIL", advice: expect.stringMatching(/driver|GPU/) });
});

describe("GET /v1/doctor", () => {
  test("answers the report of the service's own driver, and leaves its regions alone", async () => {
    await using service = await startService(["--allow-doctor"]);
    await using exporter = await startExporter();
    const register = `${service.httpUrl}/v2/cudasharedmemory/region/r/register`;
    expect((await request("POST", register, exporter.bodyLine)).status).toBe(200);
    const { status, text } = await request("GET", `${service.httpUrl}/v1/doctor`);
    expect(status).toBe(200);
    const whole = JSON.parse(text) as Report;
    expect(whole.findings.find(({ check }) => check === "driver")?.facts.kind).toBe(testDriver);
    expect(whole.findings.find(({ check }) => check === "ipc_self_test")?.status).toBe("OK");
    expect((await request("GET", `${service.httpUrl}/v2/cudasharedmemory/status`)).text).toContain('"r"');
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(JSON.stringify(service.log) + text).not.toContain(exporter.body.raw_handle.b64.slice(0, 40));
  });

  test("is refused unless the service was started to offer it", async () => {
    await using service = await startService();
    const { status, text } = await request("GET", `${service.httpUrl}/v1/doctor`);
    expect(status).toBe(403);
    expect(text).toContain("--allow-doctor");
  });

  test("is the report of a failing driver too, with status 200", async () => {
    await using service = await startService([
      "--allow-doctor",
      "--driver=cuda",
      "--driver-library=/nowhere",
    ]);
    const { status, text } = await request("GET", `${service.httpUrl}/v1/doctor`);
    expect([status, (JSON.parse(text) as Report).status]).toEqual([200, "FAIL"]);
  });

  test.skipIf(testDriver !== "emulated")(
    "a stop does not wait for a doctor that hangs, and ends it",
    async () => {
      const mark = "doctor-of-a-service-that-stops";
      // Only an exporter makes handles, so nothing of the service hangs by it.
      const variables = { CUDASHM_EMULATED_DELAYS: "cuIpcGetMemHandle=600000", MARK_OF_THIS_TEST: mark };
      await using service = await startService(["--allow-doctor"], variables);
      const asked = request("GET", `${service.httpUrl}/v1/doctor`);
      // The service, its doctor and the doctor's exporter.
      await vi.waitFor(() => expect(processesWith(mark)).toHaveLength(3), patience);
      const stopped = service.stop();
      expect(await asked).toEqual({ status: 503, text: '{"error":"Server exiting"}' });
      expect(await stopped).toEqual({ code: 0, signal: null });
      await vi.waitFor(() => expect(processesWith(mark)).toEqual([]), patience);
      expect(service.log.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    },
  );
});
