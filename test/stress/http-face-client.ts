import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { region } from "../helpers/http.js";
import {
  type Answer,
  type Disturbance,
  type FaceClient,
  lost,
  type Memory,
  type RegisterOptions,
  type Request,
} from "./answer.js";

interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: string | Uint8Array;
}

/** A client of the HTTP face with one connection, which it gives up with a call that it will not wait for. */
export class HttpFaceClient implements FaceClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  async call(wanted: Request, session: string | null, disturbance: Disturbance | null): Promise<Answer> {
    const { method, path, body } = requestOf(wanted);
    const [host, port] = this.#address.split(":");
    const headers = session === null ? {} : { "cudashm-session": session };
    const sent = request({ host, port, method, path, agent: this.#agent, headers });
    // Over HTTP all of them are the same: the connection ends.
    const timer = disturbance === null ? null : setTimeout(() => sent.destroy(), disturbance.afterMs);
    sent.end(body);
    try {
      return await answerTo(sent, wanted.op !== "read" && wanted.op !== "watch");
    } catch (error) {
      if (disturbance !== null) return lost;
      throw new Error(`${method} ${path} was not answered: ${error}`);
    } finally {
      if (timer !== null) clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

function requestOf(wanted: Request): HttpRequest {
  switch (wanted.op) {
    case "registerAsTriton":
      return {
        method: "POST",
        path: region(wanted.name, "register"),
        body: JSON.stringify(memoryJson(wanted.memory)),
      };
    case "register": {
      const body = { ...memoryJson(wanted.memory), ...optionsJson(wanted.options) };
      return { method: "PUT", path: v1(wanted.name), body: JSON.stringify(body) };
    }
    case "unregisterAsTriton":
      return { method: "POST", path: region(wanted.name, "unregister") };
    case "unregisterAll":
      return { method: "POST", path: "/v2/cudasharedmemory/unregister" };
    case "renew": {
      const body = JSON.stringify({ lease_seconds: wanted.leaseSeconds });
      return { method: "POST", path: `${v1(wanted.name)}/renew`, body };
    }
    case "release": {
      const query = `?wait=${wanted.waitMs}ms&force=${wanted.force}`;
      return { method: "DELETE", path: v1(wanted.name) + query };
    }
    case "statusAll":
      return { method: "GET", path: "/v2/cudasharedmemory/status" };
    case "status":
      return { method: "GET", path: region(wanted.name, "status") };
    case "get":
      return { method: "GET", path: `${v1(wanted.name)}?wait=${wanted.waitMs}ms` };
    case "list":
      return { method: "GET", path: "/v1/regions?page_size=3" };
    case "devices":
      return { method: "GET", path: "/v1/devices" };
    case "server":
      return { method: "GET", path: "/v1" };
    case "read":
      return { method: "GET", path: `${v1(wanted.name)}/contents` };
    case "write": {
      const path = `${v1(wanted.name)}/contents?byte_size=${wanted.bytes.length}`;
      return { method: "PUT", path, body: wanted.bytes };
    }
    case "checksum":
      return { method: "GET", path: `${v1(wanted.name)}/checksum` };
    case "watch":
      return { method: "GET", path: "/v1/events?from_revision=0" };
  }
}

function answerTo(sent: ClientRequest, isJson: boolean): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.on("error", reject).on("response", (answer: IncomingMessage) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => {
        if (isJson || answer.statusCode !== 200) pieces.push(piece);
      });
      answer.on("error", reject).on("end", () => {
        const text = String(Buffer.concat(pieces));
        if (answer.statusCode !== 200) {
          const code = String(answer.headers["x-error-code"] ?? `HTTP ${answer.statusCode}`);
          resolve({ code, text, body: {} });
        } else resolve({ code: "OK", text: "", body: text === "" ? {} : JSON.parse(text) });
      });
    });
  });
}

function v1(name: string): string {
  return `/v1/regions/${encodeURIComponent(name)}`;
}

function memoryJson({ handle, deviceId, byteSize }: Memory) {
  return { raw_handle: { b64: handle.toString("base64") }, device_id: deviceId, byte_size: byteSize };
}

function optionsJson({ offset, labels, leaseSeconds, exporter, replaces, dryRun }: RegisterOptions) {
  return {
    offset,
    labels,
    dry_run: dryRun,
    ...(leaseSeconds !== null && { lease_seconds: leaseSeconds }),
    ...(replaces !== null && { replace_generation: replaces }),
    ...(exporter !== null && {
      exporter: {
        pid: exporter.pid,
        start_time: Number(exporter.startTime),
        boot_id: exporter.bootId,
        pid_namespace: Number(exporter.pidNamespace),
      },
    }),
  };
}
