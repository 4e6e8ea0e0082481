import { expect, test } from "vitest";
import { createDoctorProcess } from "../../src/cli/doctor-process.js";
import { loadConfig } from "../../src/config.js";
import { commandIo } from "../helpers/command-io.js";

test("who asks while a report is made gets the same one, who asks later another", async () => {
  const { io } = commandIo([], {});
  const doctor = createDoctorProcess(io, loadConfig(["--driver=emulated"], {}).config);
  const first = doctor();
  expect(doctor()).toBe(first);
  expect(JSON.parse(await first)).toMatchObject({ schema: 1, status: "OK" });
  const later = doctor();
  expect(later).not.toBe(first);
  expect(JSON.parse(await later)).toMatchObject({ schema: 1 });
});

test("it looks at the driver and the library that the service was told to use", async () => {
  const { io } = commandIo([], {});
  const options = ["--driver=cuda", "--driver-library=/nowhere/libcuda.so.1"];
  const report = await createDoctorProcess(io, loadConfig(options, {}).config)();
  expect(report).toContain("/nowhere/libcuda.so.1");
  expect(JSON.parse(report)).toMatchObject({ status: "FAIL" });
});

test("a stop of the service ends it", async () => {
  const variables = { CUDASHM_EMULATED_DELAYS: "cuInit=600000" };
  const { io, stop } = commandIo([], variables);
  const report = createDoctorProcess(io, loadConfig(["--driver=emulated"], {}).config)();
  stop.abort();
  await expect(report).rejects.toThrow("process ended");
});

test("a doctor that cannot be run is told by what it said", async () => {
  const { io } = commandIo([], {});
  const broken = { ...io, self: { ...io.self, args: ["/nowhere/main.js"] } };
  const report = createDoctorProcess(broken, loadConfig([], {}).config)();
  await expect(report).rejects.toThrow("/nowhere/main.js");
});
