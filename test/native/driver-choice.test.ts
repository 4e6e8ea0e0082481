import { expect, test } from "vitest";
import { createCudaDriver, type DriverOptions } from "../../src/native/driver-selection.js";
import { emulatedCopy } from "../helpers/emulated-copy.js";

const nowhere = "/nowhere/libcuda.so.1";

/** The outcome of choosing, and what the operator was warned of. */
async function choose(
  options: Partial<DriverOptions> & Pick<DriverOptions, "preference">,
  copy?: ReturnType<typeof emulatedCopy>,
) {
  const warnings: string[] = [];
  const driver = createCudaDriver({
    contextLingerMs: 0,
    warn: (text) => warnings.push(text),
    ...(copy && { libraryPath: copy.path }),
    ...options,
  });
  const look = () =>
    driver.devices().then(
      () => null,
      (error: unknown) => error,
    );
  const error = copy === undefined ? await look() : await copy.withVariables(look);
  return { driver, error, warnings };
}

test("auto takes the real driver where it loads and finds a device, with no warning", async () => {
  using copy = emulatedCopy({}, true);
  const { driver, error, warnings } = await choose({ preference: "auto" }, copy);
  expect([error, driver.kind, warnings]).toEqual([null, "cuda", []]);
  expect(driver.description).toEqual({ libraryPath: copy.path, driverVersion: "12.8" });
});

test("auto takes the emulated driver where there is no library, and says why", async () => {
  const { driver, error, warnings } = await choose({ preference: "auto", libraryPath: nowhere });
  expect([error, driver.kind, driver.health]).toEqual([null, "emulated", { state: "usable" }]);
  expect(warnings).toEqual([expect.stringMatching(/^using the emulated driver.*\/nowhere\/libcuda\.so\.1/)]);
});

test("auto takes the emulated driver where the real one finds no device", async () => {
  using copy = emulatedCopy({ CUDASHM_EMULATED_FAULTS: "cuInit=100" }, true);
  const { driver, error, warnings } = await choose({ preference: "auto" }, copy);
  expect([error, driver.kind]).toEqual([null, "emulated"]);
  expect(warnings).toEqual([expect.stringMatching(/CUDA_ERROR_NO_DEVICE \(100\)/)]);
});

test("auto warns where the library found is the emulated one", async () => {
  using copy = emulatedCopy();
  const { driver, warnings } = await choose({ preference: "auto" }, copy);
  expect(driver.kind).toBe("emulated");
  expect(warnings).toEqual([expect.stringContaining("is the emulated driver")]);
});

test.each([
  [3, /not initialised/],
  [34, /stub/],
  [35, /too old/],
  [803, /do not match/],
  [804, /compatibility/],
  [999, /kernel's log/],
])("auto does not fall back from a real driver that fails with %i, and says why", async (code, why) => {
  using copy = emulatedCopy({ CUDASHM_EMULATED_FAULTS: `cuInit=${code}` }, true);
  const { driver, error, warnings } = await choose({ preference: "auto" }, copy);
  expect(error).toMatchObject({ code: "UNAVAILABLE", driver: { cudaCode: code } });
  expect((error as Error).message).toMatch(/^no usable CUDA driver: cuInit: CUDA_ERROR_/);
  expect((error as Error).message).toMatch(why);
  expect(driver.health).toEqual({ state: "unusable", reason: (error as Error).message });
  expect([driver.kind, driver.description, warnings]).toEqual([null, null, []]);
});

test("a variable that the emulated driver cannot use is told as such, not as a fault of a handle", async () => {
  using copy = emulatedCopy({ CUDASHM_EMULATED_DEVICE_COUNT: "many" });
  const { error } = await choose({ preference: "emulated" }, copy);
  expect((error as Error).message).toMatch(
    /^no usable CUDA driver: cuInit: CUDA_ERROR_INVALID_VALUE \(1\): .*CUDASHM_EMULATED_ variable.*standard error/,
  );
  expect((error as Error).message).not.toMatch(/handle|exporter/);
});

test("a library that lacks a function is not usable, and the function is named", async () => {
  using copy = emulatedCopy({ CUDASHM_EMULATED_HIDE: "cuMemGetAddressRange_v2" }, true);
  const { driver, error } = await choose({ preference: "auto" }, copy);
  expect(error).toMatchObject({ code: "UNAVAILABLE" });
  expect((error as Error).message).toContain("has no function cuMemGetAddressRange_v2");
  expect(driver.kind).toBeNull();
});

test("cuda refuses the emulated driver and never falls back", async () => {
  using copy = emulatedCopy();
  const marked = await choose({ preference: "cuda" }, copy);
  expect((marked.error as Error).message).toMatch(
    /is the emulated driver, and the driver asked for is 'cuda'/,
  );
  expect(copy.log.count("cuInit")).toBe(0);
  const missing = await choose({ preference: "cuda", libraryPath: nowhere });
  expect(missing.error).toMatchObject({ code: "UNAVAILABLE" });
  expect((missing.error as Error).message).toMatch(/\/nowhere\/libcuda\.so\.1.*install NVIDIA's driver/);
  expect([missing.driver.kind, missing.warnings]).toEqual([null, []]);
});

test("emulated takes our own library, and refuses one that is not", async () => {
  expect((await choose({ preference: "emulated" })).driver.kind).toBe("emulated");
  using copy = emulatedCopy({}, true);
  const { error } = await choose({ preference: "emulated" }, copy);
  expect((error as Error).message).toMatch(/is not the emulated driver/);
});

test("a handle of the emulated driver is refused on a real one, before any call of it", async () => {
  using copy = emulatedCopy({}, true);
  const { driver } = await choose({ preference: "cuda" }, copy);
  await using allocation = await driver.allocate(0, 64n);
  const handle = await allocation.exportHandle();
  await expect(driver.open(0, handle)).rejects.toMatchObject({
    cudaCode: 1,
    hint: expect.stringMatching(/is from the emulated driver.*real GPU/),
  });
  expect(copy.log.count("cuIpcOpenMemHandle_v2", 201)).toBe(0);
});

test("choosing is told in the health, and starts once however often it is asked to", async () => {
  using copy = emulatedCopy({}, true);
  const driver = createCudaDriver({ preference: "cuda", libraryPath: copy.path, contextLingerMs: 0 });
  expect([driver.health, driver.kind]).toEqual([{ state: "starting" }, null]);
  await copy.withVariables(async () => {
    driver.start();
    driver.start();
    await driver.devices();
  });
  expect(driver.health).toEqual({ state: "usable" });
  expect(copy.log.count("cuInit")).toBe(1);
});

test("a driver that fails is asked again by later calls, at most once a second", async () => {
  using copy = emulatedCopy({ CUDASHM_EMULATED_FAULTS: "cuInit@1=35,cuInit@2=803" }, true);
  let now = 5000;
  const { driver, error } = await choose({ preference: "cuda", now: () => now }, copy);
  expect((error as Error).message).toContain("(35)");
  now += 999;
  await expect(driver.devices()).rejects.toBe(error);
  expect(copy.log.count("cuInit", 803)).toBe(0);
  now += 1;
  const [one, two] = await Promise.allSettled([driver.devices(), driver.memoryInfo(0)]);
  expect([one.status, two.status]).toEqual(["rejected", "rejected"]);
  expect(copy.log.count("cuInit", 803)).toBe(1);
  expect(driver.health).toMatchObject({ state: "unusable", reason: expect.stringContaining("(803)") });
  now += 1000;
  expect((await driver.devices()).length).toBe(1);
  expect([driver.kind, driver.health]).toEqual(["cuda", { state: "usable" }]);
});
