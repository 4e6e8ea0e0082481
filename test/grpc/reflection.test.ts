import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { Client, credentials, loadPackageDefinition } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer, loadSync } from "@grpc/proto-loader";
import { describe, expect, onTestFinished, test } from "vitest";
import { addressOf, createTestFace, startServer } from "./harness.js";

const protoFolder = join(dirname(createRequire(import.meta.url).resolve("@grpc/reflection")), "../proto");

/** Answers of one reflection stream, one request at a time. */
function reflect(address: string, version: string) {
  const file = `grpc/reflection/${version}/reflection.proto`;
  const loaded = loadPackageDefinition(loadSync(file, { includeDirs: [protoFolder], oneofs: true }));
  // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
  const { ServerReflection } = (loaded as any).grpc.reflection[version];
  const client: Client = new ServerReflection(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  const stream = (client as any).serverReflectionInfo();
  stream.on("error", () => {});
  const answers = stream[Symbol.asyncIterator]();
  return {
    async ask(request: object) {
      stream.write(request);
      return (await answers.next()).value;
    },
    async hasEnded(): Promise<boolean> {
      return (await answers.next()).done;
    },
    end: () => stream.end(),
  };
}

/** The file descriptors of an answer as a package that grpc-js can make clients of. */
function loadDescriptors(files: readonly Buffer[]) {
  const set = new BinaryWriter();
  for (const file of files) set.uint32(10).bytes(file);
  return loadPackageDefinition(
    loadFileDescriptorSetFromBuffer(Buffer.from(set.finish()), { keepCase: true }),
  );
}

describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
  test("lists the services", async () => {
    const server = await startServer(createTestFace());
    const { listServicesResponse } = await reflect(addressOf(server), version).ask({ listServices: "*" });
    expect(listServicesResponse.service).toEqual([
      { name: "inference.GRPCInferenceService" },
      { name: "cudashm.v1.Registry" },
      { name: "grpc.health.v1.Health" },
    ]);
  });

  test("describes the service well enough to call it", async () => {
    const server = await startServer(createTestFace());
    const symbol = { fileContainingSymbol: "inference.GRPCInferenceService" };
    const answer = await reflect(addressOf(server), version).ask(symbol);
    const { inference } = loadDescriptors(answer.fileDescriptorResponse.fileDescriptorProto);
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
    const { GRPCInferenceService } = inference as any;
    const client = new GRPCInferenceService(addressOf(server), credentials.createInsecure());
    onTestFinished(() => client.close());
    const metadata = await new Promise((resolve, reject) => {
      client.ServerMetadata({}, (error: Error | null, response: unknown) =>
        error ? reject(error) : resolve(response),
      );
    });
    expect(metadata).toMatchObject({ name: "cudashm", version: "1.2.3" });
  });

  test("describes our own service by the names of its .proto, with what that takes from Google's", async () => {
    const face = createTestFace();
    const server = await startServer(face);
    const symbol = { fileContainingSymbol: "cudashm.v1.Registry" };
    const answer = await reflect(addressOf(server), version).ask(symbol);
    const { cudashm } = loadDescriptors(answer.fileDescriptorResponse.fileDescriptorProto);
    // biome-ignore lint/suspicious/noExplicitAny: grpc-js types dynamic clients no closer.
    const { Registry } = (cudashm as any).v1;
    const client = new Registry(addressOf(server), credentials.createInsecure());
    onTestFinished(() => client.close());
    const region = await new Promise((resolve, reject) => {
      const request = { ...face.goodRegister, lease: { seconds: 60 } };
      client.Register(request, (error: Error | null, response: unknown) =>
        error ? reject(error) : resolve(response),
      );
    });
    expect(region).toMatchObject({
      name: "r",
      lease: { seconds: expect.objectContaining({ low: 60, high: 0 }) },
      registered_at: { seconds: expect.anything() },
    });
  });
});

test("several questions are answered in one stream, which ends when the client ends it", async () => {
  const server = await startServer(createTestFace());
  const reflection = reflect(addressOf(server), "v1");
  const unknown = await reflection.ask({ fileContainingSymbol: "no.such.Symbol" });
  expect(unknown.errorResponse).toMatchObject({ errorCode: 5 });
  const health = await reflection.ask({ fileContainingSymbol: "grpc.health.v1.Health.Watch" });
  expect(health.fileDescriptorResponse.fileDescriptorProto.length).toBeGreaterThan(0);
  reflection.end();
  expect(await reflection.hasEnded()).toBe(true);
});

test("a stream ends when the service stops", async () => {
  const face = createTestFace();
  const server = await startServer(face);
  const reflection = reflect(addressOf(server), "v1");
  await reflection.ask({ listServices: "*" });
  face.shutdown.abort();
  expect(await reflection.hasEnded()).toBe(true);
  await server.close(new AbortController().signal);
});

test("bytes that are no request are the client's fault", async () => {
  const face = createTestFace();
  const server = await startServer(face);
  const client = new Client(addressOf(server), credentials.createInsecure());
  onTestFinished(() => client.close());
  const asIs = (bytes: Buffer) => bytes;
  const stream = client.makeBidiStreamRequest(
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    asIs,
    asIs,
  );
  const failed = new Promise((resolve) => stream.on("error", resolve));
  stream.resume();
  stream.write(Buffer.of(0x0a, 0x05));
  expect(await failed).toMatchObject({ code: 3, details: expect.stringContaining("cannot be decoded") });
  expect(face.faults).toEqual([]);
});
