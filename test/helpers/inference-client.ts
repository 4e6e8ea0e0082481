import { fileURLToPath } from "node:url";
import {
  type ChannelCredentials,
  type Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { told } from "./secrets.js";

const protoFolder = fileURLToPath(new URL("../../proto", import.meta.url));

type Answer = Record<string, unknown>;
type Method = (
  request: object,
  metadata: Metadata,
  options: { deadline?: number },
  done: (error: ServiceError | null, answer: Answer) => void,
) => void;

/** A JavaScript client as Triton's own example makes one: from the .proto file, with none of our codecs. */
export function inferenceClient(address: string, how: ChannelCredentials = credentials.createInsecure()) {
  const definition = loadSync("inference/grpc_service.proto", {
    includeDirs: [protoFolder],
    keepCase: true,
    longs: String,
    defaults: true,
  });
  const { inference } = loadPackageDefinition(definition) as unknown as {
    inference: {
      GRPCInferenceService: new (address: string, credentials: object) => Client & Record<string, Method>;
    };
  };
  const client = new inference.GRPCInferenceService(address, how);
  return {
    /** Rejects with gRPC's error. `timeoutMs` becomes the call's deadline. */
    call: (
      method: string,
      request: object,
      timeoutMs?: number,
      metadata: Record<string, string> = {},
    ): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
        client[method]?.(request, Metadata.fromHttp2Headers(metadata), options, (error, answer) => {
          told(error ?? answer);
          if (error === null) resolve(answer);
          else reject(error);
        });
      }),
    [Symbol.dispose]: () => client.close(),
  };
}
