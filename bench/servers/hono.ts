// Hono on @hono/node-server, doing what node-http.ts does.
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { readServerArguments } from "./arguments.js";
import { cudaPath, type RegisterBody, statusOf } from "./http-api.js";
import { createStore } from "./store.js";

const { port, store: kind } = readServerArguments();
const store = await createStore(kind);
const json = { "content-type": "application/json" };

const app = new Hono();
app.post(`${cudaPath}/region/:name/register`, async (c) => {
  const { raw_handle, device_id } = await c.req.json<RegisterBody>();
  await store.register(c.req.param("name"), Buffer.from(raw_handle.b64, "base64"), device_id);
  return c.body("", 200, json);
});
app.post(`${cudaPath}/region/:name/unregister`, async (c) => {
  await store.unregister(c.req.param("name"));
  return c.body("", 200, json);
});
// A ready string: c.json() costs more.
app.get(`${cudaPath}/region/:name/status`, (c) =>
  c.body(JSON.stringify([statusOf(c.req.param("name"))]), 200, json),
);

serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });
