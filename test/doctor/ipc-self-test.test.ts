import { expect, test } from "vitest";
import { ipcSelfTest, type SelfTestExporter, selfTestBytes } from "../../src/doctor/ipc-self-test.js";
import { createCudaDriver } from "../../src/native/driver-selection.js";
import { startExporter } from "../helpers/cudashm.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

const allocate = () => startExporter(["--driver=emulated", `--bytes=${selfTestBytes}`]);

/** The self-test on device 0 of an emulated driver with these variables; `unmarked` passes for NVIDIA's. */
async function selfTest(
  variables: Record<string, string> = {},
  start: () => Promise<SelfTestExporter> = allocate,
) {
  using copy = emulatedCopy(variables);
  const driver = createCudaDriver({ preference: "emulated", libraryPath: copy.path, contextLingerMs: 0 });
  await copy.withVariables(() => driver.devices());
  const finding = await ipcSelfTest(driver, 0, start);
  const count = (name: string) => copy.log.count(name);
  return { finding, opens: count("cuIpcOpenMemHandle_v2"), closes: count("cuIpcCloseMemHandle") };
}

test("memory that is shared is proved by its bytes, both ways, and closed", async () => {
  const seen: string[] = [];
  const { finding, opens, closes } = await selfTest({}, async () => {
    const exporter = await allocate();
    const { body } = exporter;
    return {
      body,
      write: (offset, bytes) => {
        seen.push(`write ${offset} ${bytes.length}`);
        return exporter.write(offset, bytes);
      },
      read: (offset, byteSize) => {
        seen.push(`read ${offset} ${byteSize}`);
        return exporter.read(offset, byteSize);
      },
      [Symbol.asyncDispose]: async () => {
        seen.push("dispose");
        await exporter[Symbol.asyncDispose]();
      },
    };
  });
  expect(finding).toEqual({
    check: "ipc_self_test",
    status: "OK",
    text: "device 0: another process's memory was opened, both saw each other's bytes, and it was closed",
    advice: null,
    facts: { ordinal: 0, byte_size: 65_536 },
  });
  expect(seen).toEqual(["write 0 65536", "read 0 65536", "dispose"]);
  expect([opens, closes]).toEqual([1, 1]);
});

test.each([
  [
    "cuIpcOpenMemHandle_v2=1",
    "its handle could not be opened: cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE (1)",
    0,
  ],
  ["cuMemcpyDtoH_v2=2", "the opened memory could not be read: cuMemcpyDtoH: CUDA_ERROR_OUT_OF_MEMORY (2)", 1],
  [
    "cuMemcpyHtoD_v2=2",
    "the opened memory could not be written: cuMemcpyHtoD: CUDA_ERROR_OUT_OF_MEMORY (2)",
    1,
  ],
  [
    "cuIpcCloseMemHandle=1",
    "the opened memory could not be closed: cuIpcCloseMemHandle: CUDA_ERROR_INVALID_VALUE (1)",
    0,
  ],
  ["cuMemcpyDtoH_v2=700", "the opened memory could not be read: the CUDA driver no longer works", 0],
])("%s is a failure that names the step and CUDA's error", async (fault, text, closed) => {
  const { finding, closes } = await selfTest({ CUDASHM_EMULATED_FAULTS: fault });
  expect(finding).toMatchObject({ check: "ipc_self_test", status: "FAIL", facts: { ordinal: 0 } });
  expect(finding.text).toContain(`device 0: ${text}`);
  expect(finding.advice).toMatch(/^mend the cause/);
  expect(closes).toBe(closed);
});

test.each([
  ["here", "the opened memory has not the bytes that the exporter wrote"],
  ["there", "the exporter does not see the bytes that were written here"],
])("bytes that are not seen %s are a failure, however much was opened", async (where, text) => {
  const { finding, opens, closes } = await selfTest({}, async () => {
    const exporter = await allocate();
    const { body } = exporter;
    const elsewhere = Buffer.alloc(selfTestBytes);
    return {
      body,
      write: (offset, bytes) => (where === "here" ? Promise.resolve() : exporter.write(offset, bytes)),
      read: () => Promise.resolve(elsewhere),
      [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
    };
  });
  expect(finding).toMatchObject({ status: "FAIL", text: `device 0: ${text}` });
  expect([opens, closes]).toEqual([1, 1]);
});

test("an exporter that cannot allocate is a failure with what it said", async () => {
  const { finding, opens } = await selfTest({}, () =>
    startExporter(["--driver=emulated", `--bytes=${2 ** 50}`]),
  );
  expect(finding.status).toBe("FAIL");
  expect(finding.text).toMatch(
    /^device 0: an exporter process could not allocate: .*CUDA_ERROR_OUT_OF_MEMORY \(2\)/,
  );
  expect(opens).toBe(0);
});

test.each([
  [2, /free memory/],
  [46, /nvidia-smi -c DEFAULT/],
  [400, /WSL2/],
  [801, /Jetson/],
  [205, /^mend the cause/],
])("on NVIDIA's driver, what to do about %i is told", async (code, advice) => {
  using copy = emulatedCopy({ CUDASHM_EMULATED_FAULTS: `cuCtxPushCurrent_v2@1=${code}` }, true);
  const driver = createCudaDriver({ preference: "cuda", libraryPath: copy.path, contextLingerMs: 0 });
  await copy.withVariables(() => driver.devices());
  const foreign = { raw_handle: { b64: Buffer.alloc(64, 1).toString("base64") } };
  const nothing = { read: async () => Buffer.alloc(0), write: async () => {} };
  const exporter = { body: foreign, ...nothing, [Symbol.asyncDispose]: async () => {} };
  const finding = await ipcSelfTest(driver, 0, async () => exporter);
  expect(finding).toMatchObject({ status: "FAIL", advice: expect.stringMatching(advice) });
  expect(finding.text).toContain(`(${code})`);
});

test("no handle is told, whatever goes wrong", async () => {
  let b64 = "";
  const { finding } = await selfTest({ CUDASHM_EMULATED_FAULTS: "cuIpcOpenMemHandle_v2=999" }, async () => {
    const exporter = await allocate();
    b64 = exporter.body.raw_handle.b64;
    return exporter;
  });
  expect(b64).toHaveLength(88);
  expect(finding.status).toBe("FAIL");
  expect(JSON.stringify(finding)).not.toContain(b64.slice(0, 40));
});
