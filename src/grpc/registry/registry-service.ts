import type { Server } from "@grpc/grpc-js";
import type { FaceContext } from "../../core/face-context.js";
import { addClientStreamMethod } from "../client-stream.js";
import type { OpenCalls } from "../open-calls.js";
import { addServerStreamMethod, type ServerStreamMethod } from "../server-stream.js";
import { addUnaryMethod, type UnaryMethod } from "../unary-call.js";
import { createChecksum, createReadContents, createWriteContents } from "./contents.js";
import { createHold } from "./hold.js";
import { createGet, createList, createRegister, createRenew, createUnregister } from "./region-methods.js";
import { createGetServer, createListDevices } from "./server-methods.js";
import { createWatch } from "./watch.js";

/** Full name of our own service. */
export const registryServiceName = "cudashm.v1.Registry";

/** Adds our own service, for what Triton's has no words for. Contents are refused unless `allowContents`. */
export function addRegistryService(
  server: Server,
  face: FaceContext,
  openCalls: OpenCalls,
  allowContents: boolean,
): void {
  const unary = <Request>(method: UnaryMethod<Request>) => addUnaryMethod(server, method, face, openCalls);
  const stream = <Request>(method: ServerStreamMethod<Request>) =>
    addServerStreamMethod(server, method, face, openCalls);
  unary(createGetServer(face));
  unary(createListDevices(face));
  unary(createGet(face));
  unary(createList(face));
  unary(createRegister(face));
  unary(createRenew(face));
  unary(createUnregister(face));
  unary(createChecksum(face, allowContents));
  stream(createHold(face));
  stream(createWatch(face));
  stream(createReadContents(face, allowContents));
  addClientStreamMethod(server, createWriteContents(face, allowContents), face, openCalls);
}
