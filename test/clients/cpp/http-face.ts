import { type FaceClient, httpOutcome } from "../../contract/face-client.js";
import { Calls } from "./calls.js";
import { programs } from "./programs.js";

const cuda = "/v2/cudasharedmemory";
const system = "/v2/systemsharedmemory";

/** HTTP requests by libcurl, each on a connection of its own. */
export function createCppHttpCalls(url: string) {
  const calls = new Calls(programs.httpCalls, [url]);

  /** Sends `path` as it is. Rejects with libcurl's text if there was no answer. */
  async function request(kind: "GET" | "POST" | "REGISTER", path: string, ...words: string[]) {
    const { answer } = calls.start([kind, base64(path), ...words].join(" "));
    const [status = "", body = ""] = (await answer).split(" ");
    const text = Buffer.from(body, "base64").toString();
    if (!/^\d+$/.test(status)) throw new Error(text);
    return { status: Number(status), text };
  }

  const register = (path: string, handle: Uint8Array, deviceId = 0n, byteSize = 64n) =>
    request("REGISTER", path, base64(handle), String(deviceId), String(byteSize));
  const outcome = async (answer: Promise<{ status: number; text: string }>) => {
    const { status, text } = await answer;
    return httpOutcome(status, text);
  };
  const region = (name?: string) => (name === undefined ? "" : `/region/${encodeURIComponent(name)}`);

  const face: FaceClient = {
    protocol: "http",
    register: ({ name, handle, deviceId, byteSize }) =>
      outcome(register(`${cuda}${region(name)}/register`, handle, deviceId, byteSize)),
    status: (name) => outcome(request("GET", `${cuda}${region(name)}/status`)),
    unregister: (name) => outcome(request("POST", `${cuda}${region(name)}/unregister`)),
    systemRegister: (name) => outcome(request("POST", `${system}${region(name)}/register`)),
    systemStatus: (name) => outcome(request("GET", `${system}${region(name)}/status`)),
    systemUnregister: (name) => outcome(request("POST", `${system}${region(name)}/unregister`)),
    live: async () => (await request("GET", "/v2/health/live")).status === 200,
    ready: async () => (await request("GET", "/v2/health/ready")).status === 200,
    metadata: async () => JSON.parse((await request("GET", "/v2")).text),
    close: () => {},
  };
  return {
    face,
    request,
    register,
    end: () => calls.end(),
    [Symbol.asyncDispose]: () => calls[Symbol.asyncDispose](),
  };
}

function base64(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
