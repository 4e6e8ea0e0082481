import { expect, test } from "vitest";
import { describeRefusal, isStickyResult } from "../../src/core/cuda-results.js";
import { DriverError } from "../../src/core/driver.js";

test("exactly the results that only a new process mends are sticky", () => {
  const sticky = Array.from({ length: 1000 }, (_, code) => code).filter(isStickyResult);
  expect(sticky).toEqual([700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999]);
});

test("a refusal reads as name, number and likely cause", () => {
  const refusal = { cudaError: "CUDA_ERROR_INVALID_VALUE", cudaCode: 1, hint: "stale handle" };
  expect(describeRefusal(refusal)).toBe("CUDA_ERROR_INVALID_VALUE (1): stale handle");
  const error = new DriverError("cuIpcOpenMemHandle", refusal);
  expect(error.message).toBe("cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE (1): stale handle");
  expect(error).toMatchObject({ name: "DriverError", call: "cuIpcOpenMemHandle", ...refusal });
});
