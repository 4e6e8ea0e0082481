// The HTTP face for applications that serve it themselves: `cudashm/http`.
export type { FaceContext, Fault, Readiness } from "../core/face-context.js";
export { createFaceContext, type FaceContextOptions } from "../create-face-context.js";
export { createHttpApp, type HttpApp, type HttpFaceOptions } from "./app.js";
export { type HttpServer, type ListenHttpOptions, listenHttp } from "./server.js";
