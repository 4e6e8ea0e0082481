// What the pages of the browser tests do; each test calls one of these from outside.
const cuda = "/v2/cudasharedmemory";

/** Everything a page of any site can send without asking, and what it learns of it; null is nothing at all. */
async function attack(base, body) {
  const send = (path, init) =>
    fetch(base + path, init).then(
      (answer) => (answer.type === "opaque" ? "opaque" : answer.status),
      () => null,
    );
  const post = { method: "POST" };
  return {
    read: await send(`${cuda}/status`),
    unregisterAll: await send(`${cuda}/unregister`, post),
    unregisterAllUnseen: await send(`${cuda}/unregister`, { ...post, mode: "no-cors" }),
    unregister: await send(`${cuda}/region/r/unregister`, { ...post, mode: "no-cors" }),
    register: await send(`${cuda}/region/evil/register`, { ...post, body, mode: "no-cors" }),
    write: await send("/v1/regions/r/contents", { method: "PUT", body: "evil" }),
    beacon: navigator.sendBeacon(`${base}${cuda}/unregister`, "x"),
  };
}

function submitForm(action) {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action, enctype: "text/plain" });
  document.body.append(form);
  form.submit();
}

function addSandbox() {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.srcdoc = "<title>a page without an origin</title>";
  document.body.append(frame);
}

/** What a dashboard would do: each answer with its status, error code, whether it has an id, and text. */
async function useAsClient(base, body) {
  const call = async (method, path, init) => {
    const answer = await fetch(base + path, { method, ...init });
    const { headers } = answer;
    return [answer.status, headers.get("x-error-code"), headers.has("x-request-id"), await answer.text()];
  };
  const headers = { "content-type": "application/json", authorization: "Basic YTpi" };
  return {
    register: await call("POST", `${cuda}/region/of-page/register`, { body, headers }),
    write: await call("PUT", "/v1/regions/of-page/contents?byte_size=4", { body: "dash" }),
    contents: await call("GET", "/v1/regions/of-page/contents?byte_size=4"),
    none: await call("GET", `${cuda}/region/none/status`),
    unregister: await call("POST", `${cuda}/region/of-page/unregister`),
  };
}

/** The same with the typed client, from its built files. */
async function useTypedClient(base, line) {
  const { createCudaSharedMemoryClient } = await import("/client/index.js");
  const { raw_handle, device_id, byte_size } = JSON.parse(line);
  const rawHandle = Uint8Array.from(atob(raw_handle.b64), (letter) => letter.charCodeAt(0));
  const client = createCudaSharedMemoryClient({ baseUrl: base });
  await client.register("of page/1", { rawHandle, deviceId: device_id, byteSize: byte_size });
  const { deviceId, byteSize } = await client.status("of page/1");
  await client.writeContents("of page/1", new TextEncoder().encode("typed"));
  const contents = new TextDecoder().decode(await client.readContents("of page/1", { byteSize: 5n }));
  const none = await client
    .status("none")
    .catch(({ code, message, requestId }) => [code, message, requestId !== undefined]);
  await client.unregister("of page/1");
  return { deviceId, byteSize: String(byteSize), contents, none, left: (await client.statuses()).length };
}

Object.assign(globalThis, { attack, submitForm, addSandbox, useAsClient, useTypedClient });
