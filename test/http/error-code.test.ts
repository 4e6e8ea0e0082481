import { expect, test } from "vitest";
import { driverError } from "../helpers/fake-driver.js";
import { Face, registerBody } from "./face.js";

const cuda = "/v2/cudasharedmemory";

test("errors that share the status 400 are told apart by x-error-code, named as over gRPC", async () => {
  await using face = await Face.start();
  const { driver } = face;
  await face.registerNew("r", 64);
  const codeOf = async (method: string, path: string, body?: string) => {
    const answer = await face.send(method, path, body === undefined ? {} : { body });
    return [answer.status, answer.headers["x-error-code"]];
  };
  const register = `${cuda}/region/r/register`;
  expect(await codeOf("POST", register, "{")).toEqual([400, "INVALID_ARGUMENT"]);
  expect(await codeOf("POST", register, registerBody(driver.allocate(64), 64))).toEqual([
    400,
    "ALREADY_EXISTS",
  ]);
  expect(await codeOf("GET", "/v1/regions/r/contents?offset=65")).toEqual([400, "OUT_OF_RANGE"]);
  expect(await codeOf("GET", `${cuda}/region/nobody/status`)).toEqual([404, "NOT_FOUND"]);
});

test("a fault of ours is INTERNAL, and a success names no code", async () => {
  await using face = await Face.start();
  await face.registerNew("r");
  face.driver.beforeClose = () => Promise.reject(driverError(400, "CUDA_ERROR_INVALID_HANDLE"));
  const failed = await face.post(`${cuda}/region/r/unregister`);
  expect(failed).toMatchObject({ status: 500, headers: { "x-error-code": "INTERNAL" } });
  face.driver.beforeClose = undefined;
  const closed = await face.post(`${cuda}/region/r/unregister`);
  expect([closed.status, closed.headers["x-error-code"]]).toEqual([200, undefined]);
});
