// The gRPC face for applications that serve it themselves: `cudashm/grpc`.
export type { FaceContext, Fault, Readiness } from "../core/face-context.js";
export { createFaceContext, type FaceContextOptions } from "../create-face-context.js";
export {
  addGrpcServices,
  type GrpcListenOptions,
  type GrpcServer,
  type GrpcServicesOptions,
  listenGrpc,
} from "./server.js";
