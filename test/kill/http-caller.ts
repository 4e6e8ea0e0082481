import { Agent, request } from "node:http";
import type { Exporter } from "../../src/core/exporter.js";
import { region } from "../helpers/http.js";
import type { Fact } from "./ledger.js";
import type { Caller, Outcome } from "./outcome.js";

interface Answer {
  readonly status: number;
  readonly code: string;
  readonly body: Buffer;
}

/** A client of the HTTP face that gives every call one try. */
export class HttpCaller implements Disposable {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  registerAsTriton(fact: Fact, caller: Caller): Promise<Outcome> {
    return this.#outcome("POST", region(fact.name, "register"), caller, memoryOf(fact));
  }

  unregisterAsTriton(name: string, caller: Caller): Promise<Outcome> {
    return this.#outcome("POST", region(name, "unregister"), caller);
  }

  unregisterAll(caller: Caller): Promise<Outcome> {
    return this.#outcome("POST", "/v2/cudasharedmemory/unregister", caller);
  }

  /** In the place of another, if its generation is given. */
  register(
    fact: Fact,
    caller: Caller,
    replaces: number | null = null,
    exporter: Exporter = fact.allocation.host.identity,
  ): Promise<Outcome> {
    return this.#outcome("PUT", path(fact.name), caller, {
      ...memoryOf(fact),
      offset: fact.offset,
      labels: fact.labels,
      ...(fact.leaseSeconds !== null && { lease_seconds: fact.leaseSeconds }),
      ...(replaces !== null && { replace_generation: replaces }),
      ...(fact.isExporterNamed && {
        exporter: {
          pid: exporter.pid,
          start_time: Number(exporter.startTime),
          boot_id: exporter.bootId,
          pid_namespace: Number(exporter.pidNamespace),
        },
      }),
    });
  }

  release(name: string, caller: Caller): Promise<Outcome> {
    return this.#outcome("DELETE", `${path(name)}?wait=5s`, caller);
  }

  renew(name: string, leaseSeconds: number, caller: Caller): Promise<Outcome> {
    return this.#outcome("POST", `${path(name)}/renew`, caller, { lease_seconds: leaseSeconds });
  }

  /** What is there. Rejects unless it is answered 200. */
  async get<Body>(target: string, caller: Caller): Promise<Body> {
    return JSON.parse(String(await this.bytes(target, caller))) as Body;
  }

  async bytes(target: string, caller: Caller): Promise<Buffer> {
    const { status, body } = await this.#call("GET", target, caller);
    if (status === 200) return body;
    throw new Error(`GET ${target}: ${status} ${body}`);
  }

  async status(target: string): Promise<number> {
    return (await this.#call("GET", target, { token: null, session: null })).status;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #outcome(method: string, target: string, caller: Caller, body?: object): Promise<Outcome> {
    let answer: Answer;
    try {
      answer = await this.#call(method, target, caller, body);
    } catch (error) {
      return { kind: "lost", why: (error as NodeJS.ErrnoException).code ?? String(error) };
    }
    const text = String(answer.body);
    if (answer.status !== 200) return { kind: "refused", code: answer.code, text };
    const { generation = null } = (text === "" ? {} : JSON.parse(text)) as { generation?: number };
    return { kind: "done", generation };
  }

  #call(method: string, target: string, caller: Caller, body?: object): Promise<Answer> {
    const headers = {
      ...(caller.token !== null && { authorization: `Bearer ${caller.token}` }),
      ...(caller.session !== null && { "cudashm-session": caller.session.secret }),
    };
    return new Promise((resolve, reject) => {
      const call = request(`http://${this.#address}${target}`, { method, headers, agent: this.#agent });
      call.on("error", reject).on("response", (response) => {
        const chunks: Buffer[] = [];
        response
          .on("data", (chunk: Buffer) => chunks.push(chunk))
          .on("error", reject)
          .on("end", () => {
            const code = String(response.headers["x-error-code"] ?? "");
            resolve({ status: response.statusCode ?? 0, code, body: Buffer.concat(chunks) });
          });
      });
      call.end(body && JSON.stringify(body));
    });
  }
}

function path(name: string): string {
  return `/v1/regions/${encodeURIComponent(name)}`;
}

function memoryOf({ allocation, byteSize }: Fact) {
  return {
    raw_handle: { b64: allocation.handle.toString("base64") },
    device_id: allocation.deviceId,
    byte_size: byteSize,
  };
}
