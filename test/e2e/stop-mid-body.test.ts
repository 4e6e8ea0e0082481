import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startService } from "../helpers/cudashm.js";
import { region } from "../helpers/http.js";

test("SIGTERM while a client has sent half a body ends with code 0 within the exit timeout", async () => {
  await using service = await startService(["--exit-timeout-secs=4"]);
  const { hostname, port } = new URL(service.httpUrl);
  const client = connect(Number(port), hostname);
  const head = `POST ${region("half", "register")} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n`;
  client.write(`${head}Content-Length: 500\r\n\r\n`);
  // Told to go on, the client has a request under way.
  await once(client, "data");
  client.write("{");
  const begun = performance.now();
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  expect(performance.now() - begun).toBeLessThan(4000);
  client.destroy();
});
