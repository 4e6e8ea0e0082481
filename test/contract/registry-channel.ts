import { fileURLToPath } from "node:url";
import { credentials, loadPackageDefinition, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { told } from "../helpers/secrets.js";
import type { SentHeaders } from "./face-client.js";
import { FaceRefusal } from "./registry-face-client.js";
import type { Message } from "./registry-messages.js";

const definition = loadSync("cudashm/v1/registry.proto", {
  includeDirs: [fileURLToPath(new URL("../../proto/", import.meta.url))],
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
});
const { cudashm } = loadPackageDefinition(definition) as Message;

/** A client of cudashm.v1.Registry by proto-loader, a decoder that shares nothing with the service's. */
export function connect(port: number): Message {
  return new cudashm.v1.Registry(`127.0.0.1:${port}`, credentials.createInsecure());
}

/** Headers as gRPC has them. */
export function metadataOf(headers: SentHeaders): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  return metadata;
}

/** What a call was refused with. */
export function refusalOf({ code, details }: ServiceError): FaceRefusal {
  told(details);
  return new FaceRefusal(status[code] ?? String(code), details);
}
