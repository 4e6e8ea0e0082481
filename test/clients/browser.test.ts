import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { startExporter, startService } from "../helpers/cudashm.js";
import { describeClient } from "./needed-packages.js";

const cuda = "/v2/cudasharedmemory";
const html = "<!doctype html><title>a page</title><body>";
const script = readFileSync(fileURLToPath(new URL("browser/page.js", import.meta.url)), "utf8");
const builtClient = fileURLToPath(new URL("../../dist/client", import.meta.url));

const evil = "http://evil.test";
const dashboard = "http://dashboard.test:3000";

const browserArgs = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-proxy-server",
  // Sites of our own, all on this machine, and nothing else.
  "--host-resolver-rules=MAP *.test 127.0.0.1, EXCLUDE 127.0.0.1, MAP * ~NOTFOUND",
  // What the browser itself keeps from this machine is not what is tested here.
  "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
];

function startBrowser(): Promise<Browser> {
  const { stdout } = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" });
  return chromium.launch({ executablePath: stdout.trim(), args: browserArgs });
}

describeClient("a page in a real browser", "browser", () => {
  let browser: Browser;
  let exporter: ExporterProcess;
  let service: ServiceProcess;
  let page: Page;

  beforeAll(async () => {
    [browser, exporter, service] = await Promise.all([
      startBrowser(),
      startExporter(["--fill=page"]),
      startService(["--allow-contents", `--http-allowed-origin=${dashboard}`]),
    ]);
    await fetch(`${service.httpUrl}${cuda}/region/r/register`, { method: "POST", body: exporter.bodyLine });
  }, 60_000);

  afterEach(() => page.context().close());

  afterAll(async () => {
    await browser.close();
    await exporter[Symbol.asyncDispose]();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  }, 60_000);

  /** Opens a page, with what it is to do in it. */
  const open = async (url: string) => {
    page = await (await browser.newContext()).newPage();
    // Where the name of a page means this machine, its document came from where the name meant before.
    await page.route(url, (route) => route.fulfill({ contentType: "text/html", body: html }));
    await page.goto(url);
    await page.addScriptTag({ content: script });
  };

  /** Calls a function of the page. */
  const run = (name: string, ...args: string[]): Promise<unknown> =>
    page.evaluate(`${name}(${args.map((arg) => JSON.stringify(arg)).join(", ")})`);

  /** Has the page send something that it sees no answer to, and gives that answer. */
  const answerTo = async (url: string, send: () => Promise<unknown>) => {
    const answered = page.waitForResponse(url);
    await send();
    const answer = await answered;
    return { status: answer.status(), origin: (await answer.request().allHeaders()).origin };
  };

  /** Nothing that the pages tried was done. */
  const expectUntouched = async () => {
    const listed = (await (await fetch(`${service.httpUrl}${cuda}/status`)).json()) as { name: string }[];
    expect(listed.map(({ name }) => name)).toEqual(["r"]);
    const contents = await fetch(`${service.httpUrl}/v1/regions/r/contents?byte_size=4`);
    expect(await contents.text()).toBe("page");
  };

  test("of another site neither changes nor reads anything", async () => {
    await open(`${evil}/`);
    expect(await run("attack", service.httpUrl, exporter.bodyLine)).toEqual({
      read: null,
      unregisterAll: null,
      unregisterAllUnseen: "opaque",
      unregister: "opaque",
      register: "opaque",
      write: null,
      beacon: true,
    });
    const url = `${service.httpUrl}${cuda}/unregister`;
    expect(await answerTo(url, () => run("submitForm", url))).toEqual({ status: 403, origin: evil });
    await expectUntouched();
  });

  test("whose name was made to mean this machine neither changes nor reads anything", async () => {
    const rebound = `http://rebound.test:${new URL(service.httpUrl).port}`;
    await open(`${rebound}/`);
    expect(await run("attack", rebound, exporter.bodyLine)).toEqual({
      read: 403,
      unregisterAll: 403,
      unregisterAllUnseen: 403,
      unregister: 403,
      register: 403,
      write: 403,
      beacon: true,
    });
    const url = `${rebound}${cuda}/unregister`;
    expect((await answerTo(url, () => run("submitForm", url))).status).toBe(403);
    await expectUntouched();
  });

  test("that hides its origin in a sandbox changes nothing", async () => {
    await open(`${evil}/`);
    await run("addSandbox");
    // The frame is a process of its own: what it sends is seen from here once it can be spoken to.
    const sandbox = await (await page.waitForSelector("iframe")).contentFrame();
    const url = `${service.httpUrl}${cuda}/unregister`;
    const post = `fetch(${JSON.stringify(url)}, { method: "POST", mode: "no-cors" }).then(({ type }) => type)`;
    const sent = answerTo(url, async () => expect(await sandbox?.evaluate(post)).toBe("opaque"));
    expect(await sent).toEqual({ status: 403, origin: "null" });
    await expectUntouched();
  });

  test("of a listed origin does all that any client can, and reads the headers of answers", async () => {
    await open(`${dashboard}/`);
    expect(await run("useAsClient", service.httpUrl, exporter.bodyLine)).toEqual({
      register: [200, null, true, ""],
      write: [200, null, true, ""],
      contents: [200, null, true, "dash"],
      none: [404, "NOT_FOUND", true, '{"error":"Unable to find cuda shared memory region: \'none\'"}'],
      unregister: [200, null, true, ""],
    });
  });

  test("of a listed origin can use the typed client as it was built", async () => {
    await open(`${dashboard}/`);
    await page.route(`${dashboard}/client/*.js`, (route) =>
      route.fulfill({ path: join(builtClient, basename(route.request().url())) }),
    );
    expect(await run("useTypedClient", service.httpUrl, exporter.bodyLine)).toEqual({
      deviceId: 0,
      byteSize: "4096",
      contents: "typed",
      none: ["NOT_FOUND", "Unable to find cuda shared memory region: 'none'", true],
      left: 1,
    });
  });
});
