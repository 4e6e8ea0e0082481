import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { library, run } from "./emulated-driver.js";

async function exportedSymbols(): Promise<string[]> {
  const { stdout } = await run("nm", ["-D", "--defined-only", library]);
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" ").at(-1) ?? "");
}

it("The library exports CUDA's functions and its own few, and nothing by accident", async () => {
  const own = (await exportedSymbols()).filter((name) => !/^cu[A-Z]/.test(name)).sort();
  expect(own).toEqual([
    "cudashm_emulated_counter",
    "cudashm_emulated_driver",
    "cudashm_emulated_gauge",
    "cudashm_emulated_reason",
  ]);
});

it("The library has every function that the service or a client's driver API looks up", async () => {
  const symbols = new Set(await exportedSymbols());
  const needed =
    `cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuDeviceGetCount cuDeviceGet cuDeviceGetName
    cuDeviceGetUuid cuDeviceGetUuid_v2 cuDeviceTotalMem_v2 cuDeviceGetAttribute cuDeviceGetPCIBusId
    cuDeviceCanAccessPeer cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxGetState
    cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxGetCurrent cuCtxSetCurrent cuCtxGetApiVersion cuMemGetInfo_v2
    cuMemAlloc_v2 cuMemFree_v2 cuMemGetAddressRange_v2 cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2
    cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpy cuMemcpyAsync cuMemsetD8_v2
    cuMemHostAlloc cuMemFreeHost cuPointerGetAttribute cuIpcGetMemHandle cuIpcOpenMemHandle cuIpcOpenMemHandle_v2
    cuIpcCloseMemHandle cuStreamCreate cuStreamSynchronize cuStreamDestroy_v2 cuGetProcAddress
    cuGetProcAddress_v2`.split(/\s+/);
  expect(needed.filter((name) => !symbols.has(name))).toEqual([]);
});

it("Processes that share a log write whole lines into it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cudashm-emulated-log-"));
  try {
    const log = join(folder, "calls.log");
    const script =
      "import ctypes, sys\ndriver = ctypes.CDLL(sys.argv[1])\nfor _ in range(500): driver.cuInit(0)";
    const env = { PATH: process.env.PATH, CUDASHM_EMULATED_LOG: log };
    await Promise.all([1, 2, 3].map(() => run("python3", ["-c", script, library], { env })));
    const lines = readFileSync(log, "utf8").trimEnd().split("\n");
    expect(lines).toHaveLength(1500);
    expect(lines.filter((line) => !/^\d+ \d+ cuInit 0 \d+$/.test(line))).toEqual([]);
    expect(new Set(lines.map((line) => line.split(" ")[0])).size).toBe(3);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
