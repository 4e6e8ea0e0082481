import { expect, test } from "vitest";
import { runCommand, startCommand, startExporter, startService, testDriver } from "../helpers/cudashm.js";

const allocate = ["allocate", `--driver=${testDriver}`];

test("prints exactly one line, holds until its standard input closes, and ends with code 0", async () => {
  await using exporter = startCommand([...allocate, "--bytes=123"]);
  const line = await exporter.nextLine();
  expect(JSON.parse(line)).toEqual({
    raw_handle: { b64: expect.stringMatching(/^[A-Za-z0-9+/]{86}==$/) },
    device_id: 0,
    byte_size: 123,
  });
  expect(await exporter.endInput()).toEqual({ code: 0, signal: null });
  const rest: string[] = [];
  for await (const more of exporter.lines()) rest.push(more);
  expect(rest).toEqual([]);
  expect(exporter.errorText).toMatch(/holding 123 bytes on device 0/);
  expect(exporter.errorText).not.toContain(
    (JSON.parse(line) as { raw_handle: { b64: string } }).raw_handle.b64,
  );
});

test("with --exporter its line also tells this process from all others, and registers over both APIs", async () => {
  await using exporter = startCommand([...allocate, "--exporter"]);
  const body = JSON.parse(await exporter.nextLine()) as Record<string, unknown>;
  expect(body.exporter).toEqual({
    pid: exporter.pid,
    start_time: expect.any(Number),
    boot_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    pid_namespace: expect.any(Number),
  });
  await using service = await startService();
  const post = await fetch(`${service.httpUrl}/v2/cudasharedmemory/region/a/register`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  const put = await fetch(`${service.httpUrl}/v1/regions/b`, { method: "PUT", body: JSON.stringify(body) });
  expect([post.status, put.status]).toEqual([200, 200]);
  expect(await put.json()).toMatchObject({ state: "ready", exporter: body.exporter });
});

test.each(["SIGINT", "SIGTERM"] as const)("%s frees the memory and ends with code 0", async (signal) => {
  await using exporter = startCommand(allocate);
  await exporter.nextLine();
  expect(await exporter.kill(signal)).toEqual({ code: 0, signal: null });
});

test("with nothing on standard input it prints its line and ends at once", async () => {
  const { code, lines } = await runCommand(allocate);
  expect({ code, count: lines.length }).toEqual({ code: 0, count: 1 });
});

test("more memory than there is ends with code 1 and CUDA's word for it", async () => {
  const { code, lines, errorText } = await runCommand([...allocate, `--bytes=${2 ** 50}`]);
  expect({ code, lines }).toEqual({ code: 1, lines: [] });
  expect(errorText).toContain("CUDA_ERROR_OUT_OF_MEMORY (2)");
});

test("a device that is not there ends with code 1 and says so", async () => {
  const { code, lines, errorText } = await runCommand([...allocate, "--device=99"]);
  expect({ code, lines }).toEqual({ code: 1, lines: [] });
  expect(errorText).toMatch(/^cudashm: cannot allocate: there is no device 99; the devices: 0 \(.+\)\n$/);
});

test("--interactive reads, writes and frees, and answers a mistake with what was expected", async () => {
  await using exporter = await startExporter(["--bytes=64", "--fill=0xab"]);
  expect(await exporter.read(60, 4)).toEqual(Buffer.alloc(4, 0xab));
  await exporter.write(62, Buffer.from("hi"));
  expect(await exporter.read(60, 4)).toEqual(Buffer.from([0xab, 0xab, 0x68, 0x69]));
  await expect(exporter.process.ask({ op: "open" })).rejects.toThrow(
    "op: expected read, write, memory or free",
  );
  await expect(exporter.read(-1, 4)).rejects.toThrow("offset: expected a whole number of bytes");
  await expect(exporter.read(0, 2 ** 20 + 1)).rejects.toThrow("byte_size: expected at most 1048576");
  await expect(exporter.read(61, 4)).rejects.toThrow();
  const freeBytes = await exporter.freeBytes();
  await exporter.free();
  expect(await exporter.freeBytes()).toBeGreaterThanOrEqual(freeBytes + 64);
  expect(await exporter.end()).toBe(0);
});
