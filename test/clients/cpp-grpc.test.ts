import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ServiceProcess } from "../../src/cli/service-process.js";
import { createHttpFaceClient, type FaceClient } from "../contract/face-client.js";
import { parityCases } from "../contract/parity-cases.js";
import { callLog } from "../helpers/call-log.js";
import { startService } from "../helpers/cudashm.js";
import { region, request } from "../helpers/http.js";
import { CppExporter, CppExporters } from "./cpp/exporter.js";
import { callStyles, createCppGrpcCalls, registerRequest } from "./cpp/grpc-face.js";
import { runProgram } from "./cpp/program.js";
import { buildPrograms, buildTimeoutMs, programs } from "./cpp/programs.js";
import { describeClient } from "./needed-packages.js";

const slowDriver = { CUDASHM_EMULATED_DELAYS: "cuIpcOpenMemHandle_v2=400" };
const failingClose = { CUDASHM_EMULATED_FAULTS: "cuIpcCloseMemHandle=1" };

describeClient("C++ over gRPC", "cpp", () => {
  let exporters: CppExporters;
  let service: ServiceProcess;
  let httpFace: FaceClient;
  beforeAll(async () => {
    await buildPrograms();
    exporters = new CppExporters();
    service = await startService(["--allow-contents"]);
    httpFace = createHttpFaceClient(Number(new URL(service.httpUrl).port));
  }, buildTimeoutMs);
  afterAll(async () => {
    await exporters[Symbol.asyncDispose]();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });

  describe.each(callStyles)("by %s calls, the service", (style) => {
    let calls: ReturnType<typeof createCppGrpcCalls>;
    beforeAll(() => {
      calls = createCppGrpcCalls(service.grpcAddress, style);
    });
    afterEach(async () => {
      expect(await calls.face.unregister()).toMatchObject({ code: "OK" });
    });
    afterAll(async () => {
      expect(await calls.end()).toBe(0);
    });

    test.each(parityCases.map((parityCase) => [parityCase.title, parityCase] as const))(
      "%s",
      async (_, { run }) => {
        const { allocate, staleHandle } = exporters;
        await run({ face: calls.face, other: httpFace, allocate, staleHandle });
      },
    );

    test("answers a message over its limit with RESOURCE_EXHAUSTED, and the next call as ever", async () => {
      const register = registerRequest("large", Buffer.alloc(100_000));
      const end = await calls.start("CudaSharedMemoryRegister", register).end;
      expect(end).toMatchObject({ code: status.RESOURCE_EXHAUSTED, text: expect.stringMatching(/\d/) });
      expect(await calls.face.live()).toBe(true);
    });
  });

  describe.each(callStyles)("by %s calls, a service with a slow driver", (style) => {
    test("undoes a register that the client cancels, or whose deadline passes", async () => {
      const { handle } = await exporters.allocate(4096n);
      using log = callLog();
      await using slow = await startService([], { ...slowDriver, ...log.variables });
      await using calls = createCppGrpcCalls(slow.grpcAddress, style);
      // The deadline is for the register, not for connecting.
      expect(await calls.face.ready()).toBe(true);
      const register = (name: string, timeoutMs: number) =>
        calls.start("CudaSharedMemoryRegister", registerRequest(name, handle), timeoutMs);

      const late = await register("late", 100).end;
      expect(late.code).toBe(status.DEADLINE_EXCEEDED);

      const gone = register("gone", 0);
      await untilTaken(slow.httpUrl, "gone", handle);
      gone.cancel();
      expect((await gone.end).code).toBe(status.CANCELLED);

      for (const name of ["late", "gone"]) await registerOnceUndone(calls.face, name, handle);
      expect((await calls.face.status()).regions.map(({ name }) => name)).toEqual(["gone", "late"]);
      expect(await slow.stop()).toEqual({ code: 0, signal: null });
      expect(log.count("cuIpcOpenMemHandle_v2")).toBeGreaterThan(1);
      expect(log.count("cuIpcCloseMemHandle")).toBe(log.count("cuIpcOpenMemHandle_v2"));
    });

    test("answers a register that a stop cuts short with UNAVAILABLE, and so is a service that has stopped", async () => {
      const { handle } = await exporters.allocate(4096n);
      await using slow = await startService([], slowDriver);
      await using calls = createCppGrpcCalls(slow.grpcAddress, style);
      const cut = calls.start("CudaSharedMemoryRegister", registerRequest("cut", handle));
      await untilTaken(slow.httpUrl, "cut", handle);
      const stopped = slow.stop();
      expect(await cut.end).toMatchObject({ code: status.UNAVAILABLE, text: "Server exiting" });
      expect(await stopped).toEqual({ code: 0, signal: null });
      expect((await calls.start("ServerLive", {}, 5000).end).code).toBe(status.UNAVAILABLE);
    });
  });

  test("lists 1,000 regions in one answer", async () => {
    await using calls = createCppGrpcCalls(service.grpcAddress, "callback");
    const { handle } = await exporters.allocate(4096n);
    const names = Array.from({ length: 1000 }, (_, i) => `region-${String(i).padStart(3, "0")}`);
    const ends = await Promise.all(
      names.map((name) => calls.start("CudaSharedMemoryRegister", registerRequest(name, handle)).end),
    );
    expect(new Set(ends.map((end) => end.code))).toEqual(new Set([status.OK]));
    expect((await calls.face.status()).regions).toEqual(
      names.map((name) => ({ name, deviceId: "0", byteSize: "64" })),
    );
    expect(await calls.face.unregister()).toMatchObject({ code: "OK" });
  });

  test("a register is UNAVAILABLE while there is no driver, with the reason", async () => {
    await using driverless = await startService([
      "--driver=cuda",
      "--driver-library=/nonexistent/libcuda.so.1",
    ]);
    await using calls = createCppGrpcCalls(driverless.grpcAddress, "blocking");
    const register = registerRequest("r", Buffer.alloc(64));
    expect(await calls.start("CudaSharedMemoryRegister", register).end).toMatchObject({
      code: status.UNAVAILABLE,
      text: expect.stringContaining("/nonexistent/libcuda.so.1"),
    });
    expect(await calls.face.ready()).toBe(false);
    expect(await calls.face.live()).toBe(true);
  });

  test("a register is UNIMPLEMENTED while client shared memory is disabled", async () => {
    const { handle } = await exporters.allocate(4096n);
    await using disabled = await startService(["--allow-client-shm=false"]);
    await using calls = createCppGrpcCalls(disabled.grpcAddress, "callback");
    expect(await calls.face.register({ name: "r", handle, byteSize: 64n })).toMatchObject({
      code: "UNIMPLEMENTED",
      text: expect.stringContaining("--allow-client-shm=true"),
    });
  });

  test("a call without a token is UNAUTHENTICATED where one is wanted, and health is answered", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cudashm-cpp-grpc-"));
    const tokens = join(folder, "tokens");
    writeFileSync(tokens, `ada: ${createHash("sha256").update("cpp-s3cret").digest("hex")}\n`, {
      mode: 0o600,
    });
    try {
      await using guarded = await startService([`--token-file=${tokens}`]);
      await using calls = createCppGrpcCalls(guarded.grpcAddress, "callback");
      for (const method of ["CudaSharedMemoryStatus", "CudaSharedMemoryUnregister"]) {
        expect(await calls.start(method, { name: "" }).end).toMatchObject({
          code: status.UNAUTHENTICATED,
          text: expect.stringContaining("authorization: Bearer"),
        });
      }
      expect(await calls.face.ready()).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("INTERNAL arrives whole, also when it names as many long regions as it may", async () => {
    await using failing = await startService([], failingClose);
    await using calls = createCppGrpcCalls(failing.grpcAddress, "queue");
    const names = Array.from({ length: 20 }, (_, i) => `${String(i).padStart(2, "0")}${"力".repeat(300)}`);
    const held = await Promise.all(names.map(() => CppExporter.start()));
    try {
      for (const [i, name] of names.entries()) {
        const { handle } = held[i] as CppExporter;
        expect(await calls.face.register({ name, handle, byteSize: 64n })).toMatchObject({ code: "OK" });
      }
      const end = await calls.start("CudaSharedMemoryUnregister", { name: "" }).end;
      expect(end.code).toBe(status.INTERNAL);
      expect(end.text).toBe(
        `Failed to unregister the following cuda shared memory regions: ${names[0]} ,${names[1]} , and 18 more`,
      );
    } finally {
      for (const exporter of held) await exporter[Symbol.asyncDispose]();
    }
  });

  test("a refusal's text keeps percent signs, quotes, line ends and letters of any kind", async () => {
    await using calls = createCppGrpcCalls(service.grpcAddress, "callback");
    const name = '100% %41 "quoted" 入力 \u{1f600} \\';
    expect((await calls.face.status(name)).text).toBe(`Unable to find cuda shared memory region: '${name}'`);
    const refused = await calls.face.register({
      name: "two\nlines",
      handle: Buffer.alloc(64),
      byteSize: 64n,
    });
    expect(refused.text).toMatch(
      /^failed to register shared memory region 'two\\u000alines': invalid args: /,
    );
  });

  test("the example registers, lists and unregisters, and ends with the status of a refusal", async () => {
    await using exporter = await CppExporter.start();
    const client = (...args: string[]) =>
      runProgram(programs.grpcClient, [service.grpcAddress, ...args], exporter.line);
    const ok = { code: 0, stdout: "", stderr: "" };
    const listed = { ...ok, stdout: "input 0: device 0, 4096 bytes\n" };
    expect(await client("register", "input 0")).toEqual(ok);
    expect(await client("register", "input 0")).toEqual({
      code: status.ALREADY_EXISTS,
      stdout: "",
      stderr: "status 6: shared memory region 'input 0' already in manager\n",
    });
    expect(await client("status", "input 0")).toEqual(listed);
    expect(await client("status")).toEqual(listed);
    expect(await client("unregister", "input 0")).toEqual(ok);
    expect((await client("status", "input 0")).code).toBe(status.NOT_FOUND);
    expect(await client("register", "input 1")).toEqual(ok);
    expect(await client("unregister-all")).toEqual(ok);
    expect(await client("status")).toEqual(ok);
    expect((await client("unregister")).code).toBe(64);
  });

  test("the service sees what the C++ exporter writes, and the exporter what is written through the service", async () => {
    await using exporter = await CppExporter.start(8192);
    await runProgram(programs.grpcClient, [service.grpcAddress, "register", "shared"], exporter.line);
    const contents = (offset: number, byteSize: number) =>
      `${service.httpUrl}/v1/regions/shared/contents?offset=${offset}&byte_size=${byteSize}`;
    await exporter.write(8180, "to the end..");
    expect(await request("GET", contents(8178, 14))).toEqual({ status: 200, text: "\0\0to the end.." });
    expect((await request("PUT", contents(4000, 16), "from the service")).status).toBe(200);
    expect(await exporter.read(4000, 16)).toBe("from the service");
    await runProgram(programs.grpcClient, [service.grpcAddress, "unregister", "shared"]);
    expect(await exporter.end()).toBe(0);
  });

  test("the asynchronous example registers many names at once, and reports the ones refused", async () => {
    await using exporter = await CppExporter.start();
    const client = (...names: string[]) =>
      runProgram(programs.grpcAsyncClient, [service.grpcAddress, ...names], exporter.line);
    const lines = ({ stdout }: { stdout: string }) => stdout.trimEnd().split("\n").sort();
    const all = await client("a", "b", "c");
    expect(all).toMatchObject({ code: 0, stderr: "" });
    expect(lines(all)).toEqual(["a", "b", "c"].flatMap((n) => [`${n}: registered`, `${n}: unregistered`]));

    await runProgram(programs.grpcClient, [service.grpcAddress, "register", "taken"], exporter.line);
    const refused = await client("a", "taken");
    expect(refused.code).toBe(1);
    expect(lines(refused)).toEqual([
      "a: registered",
      "a: unregistered",
      "taken: status 6: shared memory region 'taken' already in manager",
    ]);
    expect((await httpFace.status()).regions.map(({ name }) => name)).toEqual(["taken"]);
    await runProgram(programs.grpcClient, [service.grpcAddress, "unregister", "taken"]);
  });

  test("a name that is not UTF-8 is refused, and unregisters nothing", async () => {
    await using exporter = await CppExporter.start();
    const client = (command: string, name: string) =>
      // Only a shell passes on bytes that no JavaScript string stands for.
      runProgram(
        "sh",
        ["-c", `exec "$0" "$1" ${command} "$(printf '${name}')"`, programs.grpcClient, service.grpcAddress],
        exporter.line,
      );
    expect((await client("register", "caf\\303\\251")).code).toBe(0);
    for (const command of ["register", "status", "unregister"]) {
      const refused = await client(command, "caf\\351");
      expect(refused.code).toBe(status.INVALID_ARGUMENT);
      expect(refused.stderr).toContain("UTF-8");
    }
    expect((await httpFace.status()).regions.map(({ name }) => name)).toEqual(["café"]);
    expect((await client("unregister", "caf\\303\\251")).code).toBe(0);
  });
});

/** The end of a call reaches the service after the client: until then its register still holds the name. */
async function registerOnceUndone(face: FaceClient, name: string, handle: Uint8Array): Promise<void> {
  let code: string;
  do {
    ({ code } = await face.register({ name, handle, byteSize: 64n }));
  } while (code === "ALREADY_EXISTS");
  expect(code).toBe("OK");
}

/** Resolves once `name` is taken: a register of size 0 is refused for that only after a name that is free. */
async function untilTaken(url: string, name: string, handle: Uint8Array): Promise<void> {
  const b64 = Buffer.from(handle).toString("base64");
  const empty = JSON.stringify({ raw_handle: { b64 }, device_id: 0, byte_size: 0 });
  let text = "";
  while (!text.includes("already in manager")) {
    ({ text } = await request("POST", url + region(name, "register"), empty));
  }
}
