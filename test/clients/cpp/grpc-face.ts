import { status } from "@grpc/grpc-js";
import { type FaceClient, grpcOutcome, type Outcome, type ParityCode } from "../../contract/face-client.js";
import { Calls } from "./calls.js";
import { programs } from "./programs.js";

/** The three ways in which generated C++ code makes a call. */
export const callStyles = ["blocking", "queue", "callback"] as const;

/** How a call ended; beside the parity table's codes there are those that end a call early. */
interface CallEnd {
  readonly code: number;
  /** The error's text, empty on success. */
  readonly text: string;
  /** The response as protobuf's JSON, 64-bit numbers as digits; empty if the call failed. */
  readonly response: Record<string, unknown>;
}

/** C++ gRPC calls of one style over one channel. */
export function createCppGrpcCalls(address: string, style: (typeof callStyles)[number]) {
  const calls = new Calls(programs.grpcCalls, [address, style]);

  function start(method: string, request: object, timeoutMs = 0) {
    const { id, answer } = calls.start(`call ${method} ${timeoutMs} ${JSON.stringify(request)}`);
    return { end: answer.then(callEnd), cancel: () => calls.send(`${id} cancel`) };
  }

  async function outcome(method: string, request: object): Promise<Outcome> {
    const { code, text, response } = await start(method, request).end;
    return code === status.OK
      ? grpcOutcome(response)
      : { code: status[code] as ParityCode, text, regions: [] };
  }

  const face: FaceClient = {
    protocol: "grpc",
    register: ({ name, handle, deviceId = 0n, byteSize }) =>
      outcome("CudaSharedMemoryRegister", registerRequest(name, handle, byteSize, deviceId)),
    status: (name = "") => outcome("CudaSharedMemoryStatus", { name }),
    unregister: (name = "") => outcome("CudaSharedMemoryUnregister", { name }),
    systemRegister: (name) =>
      outcome("SystemSharedMemoryRegister", { name, key: "/k", offset: "0", byte_size: "64" }),
    systemStatus: (name = "") => outcome("SystemSharedMemoryStatus", { name }),
    systemUnregister: (name = "") => outcome("SystemSharedMemoryUnregister", { name }),
    live: async () => (await start("ServerLive", {}).end).response.live === true,
    ready: async () => (await start("ServerReady", {}).end).response.ready === true,
    metadata: async () =>
      (await start("ServerMetadata", {}).end).response as {
        name: string;
        version: string;
        extensions: string[];
      },
    close: () => {},
  };
  return {
    face,
    /** Starts a call with a deadline, unless `timeoutMs` is 0. */
    start,
    end: () => calls.end(),
    [Symbol.asyncDispose]: () => calls[Symbol.asyncDispose](),
  };
}

/** A register's message, as protobuf's JSON. */
export function registerRequest(name: string, handle: Uint8Array, byteSize = 64n, deviceId = 0n): object {
  const raw_handle = Buffer.from(handle).toString("base64");
  return { name, raw_handle, device_id: String(deviceId), byte_size: String(byteSize) };
}

function callEnd(answer: string): CallEnd {
  const [, code, json] = /^(\d+) (.*)$/s.exec(answer) ?? [];
  if (json === undefined) throw new Error(`no end of a call: ${answer}`);
  return code === "0"
    ? { code: 0, text: "", response: JSON.parse(json) }
    : { code: Number(code), text: JSON.parse(json), response: {} };
}
