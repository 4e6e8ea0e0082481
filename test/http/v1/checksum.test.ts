import { describe, expect, it } from "vitest";
import { createDeferred } from "../../helpers/deferred.js";
import { driverError } from "../../helpers/fake-driver.js";
import { Face } from "../face.js";
import { bodyOf, pathOf, put, refusalOf } from "./regions.js";

const path = pathOf("r", "/checksum");

describe("GET /v1/regions/{name}/checksum", () => {
  it("is the CRC-32C of the region, or of a part of it", async () => {
    await using face = await Face.start();
    const allocation = face.driver.allocate(64);
    allocation.bytes.set(Buffer.from("..123456789.."));
    await put(face, "r", allocation, { byte_size: 13 });
    // The check value of the algorithm.
    expect((await face.get(`${path}?offset=2&byte_size=9`)).text).toBe('{"crc32c":"e3069283","byte_size":9}');
    expect(bodyOf(await face.get(path)).byte_size).toBe(13);
    expect(bodyOf(await face.get(`${path}?offset=2`)).byte_size).toBe(11);
    expect(bodyOf(await face.get(`${path}?offset=13`))).toEqual({ crc32c: "00000000", byte_size: 0 });
    expect(face.registry.status("r").pins).toBe(0);
  });

  it.each([
    ["?offset=14", "OUT_OF_RANGE"],
    ["?byte_size=14", "OUT_OF_RANGE"],
    ["?offset=18446744073709551615&byte_size=1", "OUT_OF_RANGE"],
    ["?offset=-1", "INVALID_ARGUMENT"],
    ["?offset=1&offset=1", "INVALID_ARGUMENT"],
    ["?bytesize=1", "INVALID_ARGUMENT"],
  ])("refuses %s", async (query, code) => {
    await using face = await Face.start();
    await put(face, "r", face.driver.allocate(64), { byte_size: 13 });
    expect(refusalOf(await face.get(path + query)).slice(0, 2)).toEqual([400, code]);
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("is switched off with the contents, which it would give away byte by byte", async () => {
    await using face = await Face.start({ allowContents: false });
    await face.registerNew("r");
    expect(refusalOf(await face.get(path))).toEqual([
      403,
      "PERMISSION_DENIED",
      "the contents of regions are not served; start the service with --allow-contents to serve them",
    ]);
  });

  it("knows no region of another name, and says what the driver refused", async () => {
    await using face = await Face.start();
    expect((await face.get(path)).status).toBe(404);
    await face.registerNew("r");
    face.driver.beforeCopy = () => {
      throw driverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemcpyDtoH");
    };
    expect((await face.get(path)).status).toBe(500);
    expect(face.registry.status("r").pins).toBe(0);
  });

  it("holds the region until it is made, also for a client who is gone", async () => {
    await using face = await Face.start();
    await face.registerNew("r");
    const copying = createDeferred();
    const copied = createDeferred();
    face.driver.beforeCopy = () => {
      copying.resolve();
      return copied.promise;
    };
    const connection = await face.open();
    connection.send(`GET ${path} HTTP/1.1\r\n\r\n`);
    await copying.promise;
    connection.socket.destroy();
    await connection.untilClosed();
    expect((await face.send("DELETE", pathOf("r"))).text).toBe('{"closed":false,"pins":1}');
    copied.resolve();
    while (face.names().length > 0) await face.get("/v2/health/live");
    expect([face.driver.openMappings, face.faults]).toEqual([0, []]);
  });
});
