import { readFile } from "node:fs/promises";
import { driverOptions } from "../config/driver-options.js";
import { optionsHelp } from "../config/help.js";
import { readOptions } from "../config/read-options.js";
import type { Command, CommandIo, CommandResult } from "./command.js";
import { grpcClient, httpClient } from "./demo-clients.js";
import { createReport, type Report } from "./demo-report.js";
import { ExporterProcess } from "./exporter-process.js";
import { ServiceProcess } from "./service-process.js";

// Large enough that memory coming back stands out from what else happens on a GPU.
const byteSize = 16 * 2 ** 20;

/** Shows two processes sharing memory through the service, and checks every step of it. */
export const demo: Command = {
  help: () => `Usage: cudashm demo [options]

Starts the service and two exporters, each a process of its own; registers one region over HTTP and one
over gRPC; shows by their bytes that service and exporters see the same memory; unregisters; shows that
the memory came back. Ends with code 0 only if every check held.
${optionsHelp(driverOptions)}`,

  async run(io: CommandIo): Promise<CommandResult> {
    const { values } = readOptions(driverOptions, io.args, io.env);
    const driverArgs = [`--driver=${values.driver}`];
    if (values.driverLibrary !== null) driverArgs.push(`--driver-library=${values.driverLibrary}`);
    const report = createReport(io);
    try {
      await show(io, driverArgs, report);
    } catch (error) {
      report.check(`cannot go on: ${error instanceof Error ? error.message : String(error)}`, false);
    }
    return report.end();
  },
};

async function show(io: CommandIo, driverArgs: readonly string[], report: Report): Promise<void> {
  const { step, tell, check } = report;

  step("Start the service and two exporters");
  // No lingering: the context is to be gone when memory is counted at the end.
  const serviceArgs = [...driverArgs, "--allow-contents", "--context-linger-secs=0"];
  await using service = await ServiceProcess.start(io.self, serviceArgs, io.env);
  const http = httpClient(service.httpUrl);
  const grpc = grpcClient(service.grpcAddress);
  using _channel = { [Symbol.dispose]: () => grpc.close() };
  tell(`service: process ${service.process.pid}, ${service.httpUrl} and gRPC at ${service.grpcAddress}`);
  await using first = await startExporter(io, driverArgs, "the first exporter wrote this. ");
  await using second = await startExporter(io, driverArgs, "the second exporter wrote that. ");
  for (const exporter of [first, second]) {
    tell(`exporter: process ${exporter.pid} holds ${byteSize} bytes on device ${exporter.body.device_id}`);
  }

  step("Register the first one's memory over HTTP, the second one's over gRPC");
  await http.register("demo-http", first.bodyLine);
  await grpc.register("demo-grpc", second.body);
  const { cuda_driver: driver } = await http.metadata();
  tell(`the service runs on the ${driver} driver${driver === "emulated" ? ": host memory, no GPU" : ""}`);
  const expected = [
    { name: "demo-grpc", device_id: second.body.device_id, byte_size: byteSize },
    { name: "demo-http", device_id: first.body.device_id, byte_size: byteSize },
  ];
  const [overHttp, overGrpc] = [await http.status(), await grpc.status()];
  tell(`status over HTTP: ${JSON.stringify(overHttp)}`);
  tell(`status over gRPC: ${JSON.stringify(overGrpc)}`);
  check("HTTP lists both regions", same(overHttp, expected));
  check("gRPC lists both regions", same(overGrpc, expected));
  const mappedFiles = await emulatedFilesMapped(service.process.pid);
  if (driver === "emulated") {
    check(`the service maps the memory of both exporters (${mappedFiles} files)`, mappedFiles === 2);
  }

  step("Does the service see what the exporters wrote?");
  for (const [name, exporter] of [
    ["demo-http", first],
    ["demo-grpc", second],
  ] as const) {
    const seen = await http.read(name, 0, byteSize);
    tell(`${name} begins "${seen.subarray(0, exporter.pattern.length)}"`);
    check(
      `all ${byteSize} bytes of ${name} are the exporter's`,
      seen.equals(Buffer.alloc(byteSize, exporter.pattern)),
    );
  }

  step("Do the exporters see what is written through the service, and the other way round?");
  for (const [name, exporter] of [
    ["demo-http", first],
    ["demo-grpc", second],
  ] as const) {
    const toExporter = Buffer.from(`written through the service into ${name}`);
    await http.write(name, 4096, toExporter);
    const seen = await exporter.read(4096, toExporter.length);
    tell(`process ${exporter.pid} reads "${seen}"`);
    check(`the exporter of ${name} sees the service's bytes`, seen.equals(toExporter));
    const toService = Buffer.from(`written later by process ${exporter.pid}`);
    await exporter.write(byteSize - toService.length, toService);
    const seenByService = await http.read(name, byteSize - toService.length, toService.length);
    tell(`the service reads "${seenByService}"`);
    check(`the service sees the last bytes of ${name} change`, seenByService.equals(toService));
  }

  step("Unregister: the first over gRPC, the second over HTTP");
  await grpc.unregister("demo-http");
  await http.unregister("demo-grpc");
  check("HTTP lists no region", same(await http.status(), []));
  check("gRPC lists no region", same(await grpc.status(), []));

  step("Did the memory come back?");
  if (driver === "emulated") {
    const left = await emulatedFilesMapped(service.process.pid);
    check(
      `the service maps nothing of the exporters any more (${mappedFiles} files before, ${left} now)`,
      left === 0,
    );
    tell("the emulated driver counts free memory for each process by itself:");
  }
  for (const exporter of [first, second]) {
    const before = await exporter.freeBytes();
    await exporter.free();
    const gained = (await exporter.freeBytes()) - before;
    check(
      `free memory grew by ${gained} bytes when process ${exporter.pid} freed its ${byteSize}`,
      gained >= byteSize,
    );
  }

  step("Stop");
  for (const exporter of [first, second]) {
    check(`exporter ${exporter.pid} ended with code 0`, (await exporter.end()) === 0);
  }
  check("the service ended with code 0", (await service.stop()).code === 0);
}

async function startExporter(io: CommandIo, driverArgs: readonly string[], pattern: string) {
  const args = [`--bytes=${byteSize}`, `--fill=${pattern}`, ...driverArgs];
  return Object.assign(await ExporterProcess.start(io.self, args, io.env), { pattern });
}

/** How many different memory files of the emulated driver a process maps, as the kernel lists them. */
async function emulatedFilesMapped(pid: number): Promise<number> {
  const maps = await readFile(`/proc/${pid}/maps`, "utf8");
  const inodes = maps
    .split("\n")
    .filter((line) => line.includes("/memfd:cudashm"))
    .map((line) => line.split(/\s+/)[4]);
  return new Set(inodes).size;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
