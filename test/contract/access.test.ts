import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { ExporterProcess } from "../../src/cli/exporter-process.js";
import { startExporter, startService } from "../helpers/cudashm.js";
import { accessCases } from "./access-cases.js";
import { createGrpcFaceClient, createHttpFaceClient, type FaceClient } from "./face-client.js";

const exporters = new Map<bigint, Promise<ExporterProcess>>();
afterAll(async () => {
  for (const exporter of exporters.values()) await (await exporter)[Symbol.asyncDispose]();
});

async function allocate(byteSize: bigint) {
  const exporter = exporters.get(byteSize) ?? startExporter([`--bytes=${byteSize}`]);
  exporters.set(byteSize, exporter);
  return { handle: Buffer.from((await exporter).body.raw_handle.b64, "base64"), byteSize };
}

describe.each(["http", "grpc"] as const)("over %s", (protocol) => {
  test.each(accessCases.map((accessCase) => [accessCase.title, accessCase] as const))(
    "%s",
    async (_, { args, variables, run }) => {
      const folder = mkdtempSync(join(tmpdir(), "cudashm-access-"));
      const service = await startService(args(folder), variables);
      const clients: FaceClient[] = [];
      try {
        const port = Number(new URL(`http://${addressOf(service)}`).port);
        await run({
          as: (headers) => {
            const create = protocol === "http" ? createHttpFaceClient : createGrpcFaceClient;
            const client = create(port, headers);
            clients.push(client);
            return client;
          },
          allocate,
          loggedOwners: () =>
            service.log.filter(({ change }) => change === "registered").map(({ owner }) => String(owner)),
        });
      } finally {
        for (const client of clients) client.close();
        expect(await service.stop()).toEqual({ code: 0, signal: null });
        rmSync(folder, { recursive: true });
      }
      // Secrets that calls were made with, and what the service compares them with.
      expect(JSON.stringify(service.log)).not.toMatch(/s3cret|[0-9a-f]{64}/i);
    },
  );

  function addressOf({ httpUrl, grpcAddress }: { httpUrl: string; grpcAddress: string }): string {
    return protocol === "http" ? new URL(httpUrl).host : grpcAddress;
  }
});
