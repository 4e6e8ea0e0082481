import { setMaxListeners } from "node:events";
import { type Context, Hono } from "hono";
import type { Clock } from "../core/clock.js";
import type { FaceContext } from "../core/face-context.js";
import { openGate } from "../core/gate.js";
import { clientRequestId, requestIdHeader } from "../core/request-ids.js";
import { answerError } from "./answers.js";
import { apiCategory } from "./api-category.js";
import { BrowserGuard, type BrowserGuardOptions } from "./browser-guard.js";
import { createContents } from "./contents.js";
import { createCudaSharedMemory } from "./cuda-shared-memory.js";
import { createDoctor } from "./doctor.js";
import { answerFailure } from "./errors.js";
import type { Exchange } from "./exchange.js";
import { guarded } from "./guarded-handler.js";
import { NodeExchange } from "./node-exchange.js";
import { type Handler, observed } from "./observed-handler.js";
import { createOpenApi } from "./openapi.js";
import type { Operation } from "./operation.js";
import { type OperationId, operations } from "./operations.js";
import { createServiceState } from "./service-state.js";
import { systemSharedMemory } from "./system-shared-memory.js";
import { traced } from "./traced-handler.js";
import { createEvents } from "./v1/events.js";
import { createRegions } from "./v1/regions.js";
import { createServerState } from "./v1/server-state.js";
import { WebExchange } from "./web-exchange.js";

export interface HttpFaceOptions extends BrowserGuardOptions {
  /** Whether the bytes of regions can be read and written over HTTP; not unless said. */
  readonly allowContents?: boolean;
  /** Largest body of a register in bytes; 1 MiB unless said. */
  readonly maxInputSize?: number;
  /** For tests. */
  readonly clock?: Clock;
}

/** On our own server the environment is the exchange; mounted elsewhere it is whatever that puts there. */
export type HttpApp = Hono<{ Bindings: NodeExchange }>;

/**
 * Triton's HTTP API over the registry of `context`. Paths are matched as the client wrote them, never decoded
 * or folded. Serve it with `listenHttp`, or mount it in another Hono application.
 */
export function createHttpApp(context: FaceContext, options: HttpFaceOptions = {}): HttpApp {
  // Every connection that waits for the registry listens to it.
  setMaxListeners(0, context.shutdown);
  const browsers = new BrowserGuard(options);
  const gate = context.gates?.http ?? openGate;
  const mounted = new WeakMap<Request, WebExchange>();

  function exchangeOf(request: Request, env: unknown): Exchange {
    const exchange = env instanceof NodeExchange ? env : mountedExchange(request);
    exchange.requestId ??= clientRequestId(exchange.header(requestIdHeader)) ?? context.nextRequestId();
    return exchange;
  }

  function mountedExchange(request: Request): WebExchange {
    const known = mounted.get(request);
    if (known !== undefined) return known;
    const exchange = new WebExchange(request);
    mounted.set(request, exchange);
    return exchange;
  }

  // Every known route passes here, so this is the place for what must hold before any of them.
  const route = (handler: Handler) => (c: Context) => handler(exchangeOf(c.req.raw, c.env));

  const app: HttpApp = new Hono({
    getPath: (request, from) => exchangeOf(request, from?.env).path,
  });

  const maxInputSize = options.maxInputSize ?? 2 ** 20;
  const cuda = createCudaSharedMemory(context, maxInputSize);
  const service = createServiceState(context);
  const contents = createContents(context, options.allowContents ?? false);
  const regions = createRegions(context, maxInputSize);
  const state = createServerState(context);
  const handlers: Readonly<Record<OperationId, Handler>> = {
    cudaSharedMemoryStatus: cuda.statusAll,
    cudaSharedMemoryRegionStatus: cuda.status,
    cudaSharedMemoryRegister: cuda.register,
    cudaSharedMemoryRegisterWithoutName: cuda.registerWithoutName,
    cudaSharedMemoryUnregister: cuda.unregister,
    cudaSharedMemoryUnregisterAll: cuda.unregisterAll,
    systemSharedMemoryStatus: systemSharedMemory.statusAll,
    systemSharedMemoryRegionStatus: systemSharedMemory.status,
    systemSharedMemoryRegister: systemSharedMemory.register,
    systemSharedMemoryRegisterWithoutName: systemSharedMemory.register,
    systemSharedMemoryUnregister: systemSharedMemory.unregister,
    systemSharedMemoryUnregisterAll: systemSharedMemory.unregister,
    serverMetadata: service.metadata,
    serverLive: service.live,
    serverReady: service.ready,
    serverState: state.server,
    listDevices: state.devices,
    listRegions: regions.list,
    getRegion: regions.get,
    registerRegion: regions.register,
    releaseRegion: regions.release,
    renewRegion: regions.renew,
    watchRegions: createEvents(context, options.clock),
    checksumRegion: contents.checksum,
    readRegionContents: contents.read,
    writeRegionContents: contents.write,
    doctorReport: createDoctor(context),
    openApiDocument: createOpenApi(context),
  };
  for (const [id, operation] of Object.entries(operations)) {
    const behindGate = guarded(handlers[id as OperationId], apiCategory(operation), gate, context.registry);
    const handler = observed(browsers.guard(behindGate), context.observeOperation?.("http", id));
    const trace = context.traceOperation?.({ protocol: "http", route: operation.path });
    app.on(operation.method, routePath(operation), route(traced(handler, trace)));
  }

  const unmatched = (exchange: Exchange) => {
    browsers.check(exchange);
    const [served, ...others] = operationsAt(app, exchange.path);
    if (served === undefined) return answerError(exchange, 404, "Not Found");
    gate.checkRestricted(apiCategory(served), exchange);
    return answerError(exchange, 405, "Method Not Allowed", { allow: methodsOf([served, ...others]) });
  };
  const observeUnmatched = context.observeOperation?.("http", "unmatched");
  const answerUnmatched = traced(
    observed(unmatched, observeUnmatched, "UNIMPLEMENTED"),
    context.traceOperation?.({ protocol: "http", route: undefined }),
  );
  app.notFound((c) => {
    const exchange = exchangeOf(c.req.raw, c.env);
    const methods = () => methodsOf(operationsAt(app, exchange.path));
    return browsers.preflight(exchange, methods) ?? answerUnmatched(exchange);
  });
  app.onError((error, c) => answerFailure(exchangeOf(c.req.raw, c.env), error, context));
  return app;
}

function routePath({ path }: Operation): string {
  return path.replace("{region_name}", ":name");
}

/** The operations that a path is served with; none if it is no path of ours. */
function operationsAt(app: HttpApp, path: string): Operation[] {
  return Object.values<Operation>(operations).filter((operation) => {
    const [match] = app.router.match(operation.method, path)[0];
    return match !== undefined && match[0][1].path === routePath(operation);
  });
}

function methodsOf(served: readonly Operation[]): string {
  return served.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
}
