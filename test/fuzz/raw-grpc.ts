import { fileURLToPath } from "node:url";
import {
  Client,
  type ClientDuplexStream,
  type ClientWritableStream,
  credentials,
  Metadata,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";

export interface GrpcOutcome {
  readonly code: string;
  readonly text: string;
  readonly messages: readonly Buffer[];
}

type AnyMethod = MethodDefinition<object, object>;

const definition = loadSync(
  ["inference/grpc_service.proto", "cudashm/v1/registry.proto", "grpc/health/v1/health.proto"],
  { includeDirs: [fileURLToPath(new URL("../../proto", import.meta.url))], keepCase: true, longs: String },
);

/** A method as another codec than the service's knows it. */
export function methodOf(service: string, method: string): AnyMethod {
  const found = definition[service] as Readonly<Record<string, AnyMethod>> | undefined;
  if (found?.[method] === undefined) throw new Error(`there is no ${service}/${method}`);
  return found[method];
}

const asIs = (bytes: Buffer) => bytes;

/** Node's HTTP/2 ends a connection on which a thousand calls were cancelled in a short time. */
const callsOfConnection = 400;

/** Sends messages as they are, whatever they are. */
export class RawGrpc implements Disposable {
  readonly #address: string;
  #client: Client;
  #calls = 0;

  constructor(address: string) {
    this.#address = address;
    this.#client = this.#connect();
  }

  #connect(): Client {
    const options = { "grpc.use_local_subchannel_pool": 1 };
    return new Client(this.#address, credentials.createInsecure(), options);
  }

  /**
   * Calls a method with so many messages, of which one that takes one message takes the first. A stream of answers is
   * cancelled after `enough` of them. Resolves with how the call ended.
   */
  call(
    { path, requestStream, responseStream }: Pick<AnyMethod, "path" | "requestStream" | "responseStream">,
    messages: readonly Uint8Array[],
    { enough = 1, timeoutMs = 200 } = {},
  ): Promise<GrpcOutcome> {
    if (++this.#calls % callsOfConnection === 0) {
      this.#client.close();
      this.#client = this.#connect();
    }
    const options = { deadline: Date.now() + timeoutMs };
    const [first = Buffer.alloc(0)] = messages.map((message) => Buffer.from(message));
    const [client, none] = [this.#client, new Metadata()];
    return new Promise((resolve) => {
      const answers: Buffer[] = [];
      const end = ({ code, details }: Pick<StatusObject, "code" | "details">) =>
        resolve({ code: status[code] ?? String(code), text: details, messages: answers });
      const onAnswer = (_error: unknown, answer?: Buffer) => {
        if (answer !== undefined) answers.push(answer);
      };
      const sendAll = (stream: ClientWritableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>) => {
        for (const message of messages) stream.write(Buffer.from(message));
        stream.end();
        return stream;
      };
      const send = () => {
        if (requestStream && responseStream) {
          return sendAll(client.makeBidiStreamRequest(path, asIs, asIs, none, options));
        }
        if (requestStream) {
          return sendAll(client.makeClientStreamRequest(path, asIs, asIs, none, options, onAnswer));
        }
        if (responseStream) return client.makeServerStreamRequest(path, asIs, asIs, first, none, options);
        return client.makeUnaryRequest(path, asIs, asIs, first, none, options, onAnswer);
      };
      const call = send();
      // Comes last of all, and of every kind of call.
      call.on("status", end);
      // Says the same.
      call.on("error", () => {});
      if (responseStream) {
        call.on("data", (answer: Buffer) => {
          answers.push(answer);
          if (answers.length === enough) call.cancel();
        });
      }
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
