import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { listenMetrics } from "../../src/metrics/server.js";

async function start(render: () => Promise<string> = async () => "up 1\n") {
  const faults: unknown[] = [];
  const server = await listenMetrics({
    host: "127.0.0.1",
    port: 0,
    render,
    reportFault: (error) => faults.push(error),
  });
  onTestFinished(() => server.close(AbortSignal.abort()));
  const url = `http://127.0.0.1:${server.address.port}`;
  return { server, url, faults };
}

test("GET /metrics answers with Prometheus's content type, HEAD without the body", async () => {
  const { url } = await start();
  for (const path of ["/metrics", "/metrics?name=x"]) {
    const answer = await fetch(url + path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await answer.text()).toBe("up 1\n");
  }
  const head = await fetch(`${url}/metrics`, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "5", ""]);
});

test("nothing else is there, and nothing can be changed", async () => {
  const { url } = await start();
  for (const path of ["/", "/metrics/", "/v2/cudasharedmemory/status", "/metrics2"]) {
    expect((await fetch(url + path)).status).toBe(404);
  }
  const post = await fetch(`${url}/metrics`, { method: "POST", body: "x" });
  expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

test("metrics that cannot be rendered are a fault of ours: the client gets a fixed text, the log the cause", async () => {
  const cause = new Error("secret cause");
  const { url, faults } = await start(() => Promise.reject(cause));
  const answer = await fetch(`${url}/metrics`);
  expect([answer.status, await answer.text()]).toEqual([
    500,
    "internal error; the cause is in the service's log\n",
  ]);
  expect(faults).toEqual([cause]);
});

test("a close does not wait for a scraper that keeps its connection", async () => {
  const { server } = await start();
  const parked = connect(server.address.port, "127.0.0.1");
  parked.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(parked, "data");
  const gone = once(parked, "close");
  await server.close(new AbortController().signal);
  await gone;
});

test("a close waits for the answer on its way, until its deadline", async () => {
  let asked = () => {};
  const hanging = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const { server, url } = await start(() => {
    asked();
    return new Promise(() => {});
  });
  const answer = fetch(`${url}/metrics`).catch((error: unknown) => error);
  await hanging;
  const deadline = new AbortController();
  const closed = server.close(deadline.signal);
  deadline.abort();
  await closed;
  expect(await answer).toBeInstanceOf(Error);
});
