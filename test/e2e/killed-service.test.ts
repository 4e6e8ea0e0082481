import { expect, test } from "vitest";
import { startExporter, startService } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";

test("a service that is killed with open regions leaves its exporter and its successor well", async () => {
  await using exporter = await startExporter(["--fill=kept "]);
  const register = async (service: { readonly httpUrl: string }) =>
    (await request("POST", service.httpUrl + region("r", "register"), exporter.bodyLine)).status;
  await using killed = await startService();
  expect(await register(killed)).toBe(200);
  expect(await killed.stop("SIGKILL")).toEqual({ code: null, signal: "SIGKILL" });
  expect(await exporter.read(0, 5)).toEqual(Buffer.from("kept "));

  await using successor = await startService(["--allow-contents"]);
  expect((await request("GET", `${successor.httpUrl}/v2/cudasharedmemory/status`)).text).toBe("[]");
  expect(await register(successor)).toBe(200);
  await exporter.write(0, Buffer.from("again"));
  const contents = await request("GET", `${successor.httpUrl}/v1/regions/r/contents?byte_size=5`);
  expect(contents).toEqual({ status: 200, text: "again" });
  expect(await successor.stop()).toEqual({ code: 0, signal: null });
  await exporter.free();
  expect(await exporter.end()).toBe(0);
});
