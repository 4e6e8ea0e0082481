// What an application does that serves the faces itself: both over one registry, HTTP below its own Hono application
// and gRPC beside its own services. Compiled against the installed package, then run.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { getRequestListener } from "@hono/node-server";
import { createCudaDriver, RegionRegistry, RegistryError } from "cudashm";
import { type CudaSharedMemoryClient, createCudaSharedMemoryClient } from "cudashm/client";
import { addGrpcServices, listenGrpc } from "cudashm/grpc";
import { createFaceContext, createHttpApp, type FaceContext, listenHttp } from "cudashm/http";
import { Hono } from "hono";

const driver = createCudaDriver({ preference: "emulated", contextLingerMs: 0 });
await driver.devices();
const registry = new RegionRegistry({ driver });
const context: FaceContext = createFaceContext({ registry, driver });

const app = new Hono();
app.get("/mine", (c) => c.text("mine"));
app.route("/", createHttpApp(context));
const http = createServer(getRequestListener(app.fetch));
http.listen(0, "127.0.0.1");
await once(http, "listening");
const baseUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;

const grpc = new Server();
addGrpcServices(grpc, context);
const grpcPort = await new Promise<number>((resolve, reject) => {
  const bound = (error: Error | null, port: number) => (error === null ? resolve(port) : reject(error));
  grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), bound);
});

const ownHttp = await listenHttp(createHttpApp(context), { host: "127.0.0.1", port: 0 });
const ownGrpc = await listenGrpc(context, { host: "127.0.0.1", port: 0 });

const client: CudaSharedMemoryClient = createCudaSharedMemoryClient({ baseUrl });
let refused: unknown;
try {
  registry.status("missing");
} catch (error) {
  refused = error instanceof RegistryError ? error.code : error;
}
process.stdout.write(
  `${JSON.stringify({
    mine: await (await fetch(`${baseUrl}/mine`)).text(),
    ready: (await fetch(`${baseUrl}/v2/health/ready`)).status,
    metadata: await (await fetch(`${baseUrl}/v2`)).json(),
    regions: await client.statuses(),
    refused,
    grpcPort,
    ownHttp: (await fetch(`http://127.0.0.1:${ownHttp.address?.port}/v2/health/ready`)).status,
    ownGrpcPort: ownGrpc.address?.port,
  })}\n`,
);

// Serves until its standard input closes.
process.stdin.resume();
await once(process.stdin, "end");
http.close();
http.closeIdleConnections();
grpc.forceShutdown();
await Promise.all([ownHttp.close(AbortSignal.abort()), ownGrpc.close(AbortSignal.abort())]);
await registry.close();
