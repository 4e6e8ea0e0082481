import { describe, expect, it } from "vitest";
import { createDeferred } from "../../helpers/deferred.js";
import { FakeClock } from "../../helpers/fake-clock.js";
import { FakeExporters } from "../../helpers/fake-exporters.js";
import { Face } from "../face.js";
import { bodyOf, pathOf, put, refusalOf, registration } from "./regions.js";

describe("PUT /v1/regions/{name}", () => {
  it("registers, and shows the region in full", async () => {
    const clock = new FakeClock(Date.UTC(2031, 4, 6, 7, 8, 9, 10));
    await using face = await Face.start({ clock });
    const allocation = face.driver.allocate(4096, 1);
    const answer = await put(face, "a", allocation, { byte_size: 100, offset: 28 });
    const { fingerprint } = bodyOf(answer);
    expect(fingerprint).toBe(allocation.handle.fingerprint);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.text).toBe(
      `{"name":"a","kind":"cuda","state":"ready","reason":"requested","device_id":1,` +
        `"device_uuid":"GPU-00000000-0000-0000-0000-000000000001","byte_size":100,"offset":28,` +
        `"allocation_byte_size":4096,"owner":"anonymous","session":null,"protocol":"http",` +
        `"registered_at":"2031-05-06T07:08:09.010Z","last_used_at":null,"lease_seconds":null,` +
        `"lease_expires_at":null,"pins":0,"generation":1,"fingerprint":"${fingerprint}","labels":{},` +
        `"exporter":null,"verified":true}`,
    );
    expect(face.names()).toEqual(["a"]);
  });

  it("takes every option", async () => {
    const clock = new FakeClock();
    const exporters = new FakeExporters();
    await using face = await Face.start({ clock, registry: { exporters, orphanGraceMs: 5000 } });
    const process = exporters.start();
    const exporter = { pid: process.pid, start_time: 707, boot_id: "boot", pid_namespace: 4026531836 };
    const answer = await put(face, "a", face.driver.allocate(64), {
      device_id: undefined,
      device_uuid: "GPU-00000000-0000-0000-0000-000000000000",
      lease_seconds: 90.5,
      exporter,
      labels: Object.fromEntries([
        ["team/job", 'train "ä"'],
        ["__proto__", "2"],
      ]),
      dry_run: false,
    });
    expect(bodyOf(answer)).toMatchObject({
      device_id: 0,
      lease_seconds: 90.5,
      lease_expires_at: new Date(clock.now() + 90_500).toISOString(),
      exporter,
    });
    expect(answer.text).toContain('"labels":{"team/job":"train \\"ä\\"","__proto__":"2"}');
    exporters.exit(process);
    expect(bodyOf(await face.get(pathOf("a")))).toMatchObject({
      state: "orphaned",
      reason: "exporter_exited",
    });
  });

  it("keeps every digit of 64-bit numbers", async () => {
    const exporters = new FakeExporters();
    await using face = await Face.start({ registry: { exporters } });
    const { pid } = exporters.start();
    const body = registration(face.driver.allocate(64)).replace(
      /}$/,
      `,"exporter":{"pid":${pid},"start_time":18446744073709551615,"boot_id":"boot","pid_namespace":9007199254740993}}`,
    );
    const { status, text } = await face.send("PUT", pathOf("a"), { body });
    expect(status).toBe(200);
    expect(text).toContain(
      `"exporter":{"pid":${pid},"start_time":18446744073709551615,"boot_id":"boot","pid_namespace":9007199254740993}`,
    );
  });

  it.each(["a/b", "100%", "日本", "__proto__", " ", "a+b", "?", "ä".repeat(512)])(
    "serves the name %j in its path",
    async (name) => {
      await using face = await Face.start();
      expect(bodyOf(await put(face, name, face.driver.allocate(64)))).toMatchObject({ name });
      expect(face.names()).toEqual([name]);
      expect(bodyOf(await face.get(pathOf(name)))).toMatchObject({ name });
      expect(bodyOf(await face.send("DELETE", pathOf(name)))).toEqual({ closed: true, pins: 0 });
    },
  );

  it.each(["%", "%ff", "%zz", "..", "%2e", "%00", "a%0a", "x".repeat(1025)])(
    "refuses the path segment %j before it reads a body",
    async (segment) => {
      await using face = await Face.start();
      const [status, code] = refusalOf(await face.send("PUT", `/v1/regions/${segment}`, { body: "{" }));
      expect([status, code]).toEqual([400, "INVALID_ARGUMENT"]);
      expect(face.driver.openCalls).toBe(0);
    },
  );

  it("answers the same again with the region there is, its lease anew", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    const allocation = face.driver.allocate(64);
    const first = bodyOf(await put(face, "a", allocation, { lease_seconds: 10 }));
    clock.advance(4000);
    const second = bodyOf(await put(face, "a", allocation, { lease_seconds: 10 }));
    expect(second).toEqual({ ...first, lease_expires_at: new Date(clock.now() + 10_000).toISOString() });
    expect(face.driver.openCalls).toBe(1);
    expect(refusalOf(await put(face, "a", allocation, { byte_size: 63 }))).toEqual([
      400,
      "ALREADY_EXISTS",
      "shared memory region 'a' already in manager",
    ]);
  });

  it("replaces a region whose generation is given", async () => {
    await using face = await Face.start();
    await put(face, "a", face.driver.allocate(64));
    const larger = face.driver.allocate(128);
    expect(refusalOf(await put(face, "a", larger, { replace_generation: 7 }))).toEqual([
      400,
      "FAILED_PRECONDITION",
      "shared memory region 'a' has generation 1, not 7: it was registered anew",
    ]);
    const replaced = bodyOf(await put(face, "a", larger, { replace_generation: 1 }));
    expect([replaced.byte_size, replaced.generation > 1]).toEqual([128, true]);
    expect(face.driver.openMappings).toBe(1);
  });

  it("tells of a dry run what would be, and registers nothing", async () => {
    const clock = new FakeClock();
    await using face = await Face.start({ clock });
    const body = bodyOf(await put(face, "a", face.driver.allocate(4096), { byte_size: 64, dry_run: true }));
    expect(body).toMatchObject({
      state: "registering",
      allocation_byte_size: 4096,
      registered_at: new Date(clock.now()).toISOString(),
    });
    expect([face.names(), face.driver.openMappings]).toEqual([[], 0]);
    expect((await face.get(pathOf("a"))).status).toBe(404);
  });

  const handleText =
    "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t: expected the base64 of exactly 64 bytes";
  const whole = "must be a whole number from 0 to 18446744073709551615";
  it.each<[string, object, string | RegExp]>([
    ["no raw_handle", { raw_handle: undefined }, "'raw_handle' is missing"],
    ["a raw_handle that is a string", { raw_handle: "x" }, "'raw_handle' must be an object"],
    ["a raw_handle without b64", { raw_handle: {} }, "'raw_handle.b64' is missing"],
    ["a b64 that is none", { raw_handle: { b64: 1 } }, "'raw_handle.b64' must be a string"],
    ["a handle of 63 bytes", { raw_handle: { b64: Buffer.alloc(63).toString("base64") } }, handleText],
    ["more in raw_handle", { raw_handle: { b64: "", b65: "" } }, "unknown member 'b65'; did you mean 'b64'?"],
    ["no device", { device_id: undefined }, /say on which device the memory is/],
    ["a device that is text", { device_id: "0" }, `'device_id' ${whole}`],
    ["a device below 0", { device_id: -1 }, `'device_id' ${whole}`],
    ["a device that is not there", { device_id: 99 }, /device_id 99 is no device of this service/],
    ["a UUID that is a number", { device_uuid: 1 }, "'device_uuid' must be a string"],
    ["a UUID that is not there", { device_uuid: "GPU-x" }, /device_uuid GPU-x is no device/],
    ["no byte_size", { byte_size: undefined }, "'byte_size' is missing"],
    ["a byte_size of 0", { byte_size: 0 }, /byte_size must be at least 1/],
    ["a byte_size that is null", { byte_size: null }, `'byte_size' ${whole}`],
    ["a byte_size beyond the allocation", { byte_size: 65 }, /byte_size 65 exceeds the 64 bytes/],
    ["an offset beyond it", { offset: 1 }, /offset 1 and byte_size 64 together exceed the 64 bytes/],
    ["an offset that is text", { offset: "1" }, `'offset' ${whole}`],
    ["a lease that is too short", { lease_seconds: 0.999 }, /a lease lasts 1 to 604800 seconds, got 0.999/],
    ["a lease that is too long", { lease_seconds: 604800.001 }, /a lease lasts 1 to 604800 seconds/],
    [
      "a lease of microseconds",
      { lease_seconds: 1.0001 },
      "'lease_seconds' must be a number of seconds with at most 3 decimals",
    ],
    [
      "a lease with an exponent",
      { lease_seconds: 1e21 },
      "'lease_seconds' must be a number of seconds with at most 3 decimals",
    ],
    ["an exporter that is a number", { exporter: 1 }, "'exporter' must be an object"],
    ["an exporter without its start", { exporter: { pid: 1 } }, "'exporter.start_time' is missing"],
    [
      "an exporter of no process",
      { exporter: { pid: -1, start_time: 1, boot_id: "b", pid_namespace: 1 } },
      "'exporter.pid' must be a whole number from 0 to 2147483647",
    ],
    [
      "more in an exporter",
      { exporter: { pid: 1, starttime: 1 } },
      "unknown member 'starttime'; did you mean 'start_time'?",
    ],
    ["labels that are a list", { labels: [] }, "'labels' must be an object"],
    ["a label that is a number", { labels: { a: 1 } }, "'labels' must be an object of strings"],
    ["a label without a key", { labels: { "": "x" } }, /a label's key has 1 to 63 letters/],
    ["a generation that is text", { replace_generation: "1" }, `'replace_generation' ${whole}`],
    ["a generation of nobody", { replace_generation: 1 }, /cannot be replaced: there is none/],
    ["a dry run that is a number", { dry_run: 1 }, "'dry_run' must be true or false"],
    ["a mistyped member", { devce_id: 1 }, "unknown member 'devce_id'; did you mean 'device_id'?"],
  ])("refuses %s", async (_, fields, text) => {
    await using face = await Face.start();
    const [status, code, error] = refusalOf(await put(face, "a", face.driver.allocate(64), fields));
    expect([status, code]).toEqual([400, expect.stringMatching(/INVALID_ARGUMENT|FAILED_PRECONDITION/)]);
    if (typeof text === "string") expect(error).toBe(text);
    else expect(error).toMatch(text);
    expect([face.names(), face.driver.openMappings, face.faults]).toEqual([[], 0, []]);
  });

  it.each(["[]", "1", "null", '"x"'])("refuses the body %s", async (body) => {
    await using face = await Face.start();
    expect(refusalOf(await face.send("PUT", pathOf("a"), { body }))).toEqual([
      400,
      "INVALID_ARGUMENT",
      "the body must be an object",
    ]);
  });

  it.each([
    ["", "failed to parse the request JSON buffer: the body is empty at 0"],
    ['{"byte_size":1,"byte_size":2}', /^failed to parse the request JSON buffer: Duplicate key at \d+$/],
    ["{", /^failed to parse the request JSON buffer: /],
  ])("refuses the malformed body %j", async (body, text) => {
    await using face = await Face.start();
    const [status, code, error] = refusalOf(await face.send("PUT", pathOf("a"), { body }));
    expect([status, code]).toEqual([400, "INVALID_ARGUMENT"]);
    expect(error).toMatch(text);
  });

  it("repeats no unknown member that is nothing like a known one: it may be a handle", async () => {
    await using face = await Face.start();
    const { b64 } = JSON.parse(registration(face.driver.allocate(64))).raw_handle;
    for (const member of [b64, b64.slice(0, 20), "x".repeat(100_000)]) {
      const answer = await face.send("PUT", pathOf("a"), { body: JSON.stringify({ [member]: 1 }) });
      expect(refusalOf(answer)[2]).toBe(
        "unknown member; expected are raw_handle, device_id, device_uuid, byte_size, offset, lease_seconds, exporter, labels, replace_generation, dry_run",
      );
    }
  });

  it("refuses a query, and a body over the limit", async () => {
    await using face = await Face.start({ maxInputSize: 300 });
    const allocation = face.driver.allocate(64);
    const body = registration(allocation);
    const answer = await face.send("PUT", `${pathOf("a")}?dry_run=true`, { body });
    expect(refusalOf(answer)).toEqual([400, "INVALID_ARGUMENT", "unknown query parameter; none is expected"]);
    const [status, , text] = refusalOf(await put(face, "a", allocation, { labels: { a: "x".repeat(300) } }));
    expect([status, text]).toEqual([400, expect.stringMatching(/exceeds the maximum allowed input size/)]);
    expect(face.driver.openCalls).toBe(0);
  });

  it("is switched off with the registers of Triton's API", async () => {
    await using face = await Face.start({ allowClientShm: false });
    const [status, code] = refusalOf(await put(face, "a", face.driver.allocate(64)));
    expect([status, code]).toEqual([501, "UNIMPLEMENTED"]);
  });

  it("says where exporters cannot be watched", async () => {
    await using face = await Face.start();
    const exporter = { pid: 1, start_time: 1, boot_id: "b", pid_namespace: 1 };
    expect(refusalOf(await put(face, "a", face.driver.allocate(64), { exporter }))).toEqual([
      501,
      "UNIMPLEMENTED",
      expect.stringMatching(/this service cannot watch exporters; register without one$/),
    ]);
  });

  it("undoes what a client asked for who is gone", async () => {
    await using face = await Face.start();
    const opening = createDeferred();
    const opened = createDeferred();
    face.driver.beforeOpen = () => {
      opening.resolve();
      return opened.promise;
    };
    const body = registration(face.driver.allocate(64));
    const connection = await face.open();
    connection.send(`PUT /v1/regions/a HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await opening.promise;
    connection.socket.destroy();
    await connection.untilClosed();
    await face.get("/v2");
    opened.resolve();
    while (face.driver.openMappings > 0 || face.driver.opens === 0) await face.get("/v2");
    expect([face.names(), face.faults]).toEqual([[], []]);
  });
});
