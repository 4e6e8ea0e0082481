import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ServiceProcess } from "../../src/cli/service-process.js";
import { startExporter, testDriver } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
// As a container's root is, which may do less than the machine's.
const withoutPtrace = ["--bounding-set=-sys_ptrace", "--inh-caps=-all", process.execPath];
const canDropRights = spawnSync("setpriv", [...withoutPtrace, "--check", main]).status === 0;

test.skipIf(testDriver !== "emulated" || !canDropRights)(
  "the emulated driver refuses an exporter of the same user that may do more than the service, and says so",
  async () => {
    const self = { executable: "setpriv", args: [...withoutPtrace, main] };
    await using service = await ServiceProcess.start(self, ["--driver=emulated"]);
    await using exporter = await startExporter();
    const { status, text } = await request(
      "POST",
      service.httpUrl + region("r", "register"),
      exporter.bodyLine,
    );
    expect(status).toBe(400);
    expect(text).toMatch(
      /CUDA_ERROR_NOT_PERMITTED \(800\): .*equal uids.*no capability that this process lacks/,
    );
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  },
);
