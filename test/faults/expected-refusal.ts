import type { FaceRefusal } from "../contract/registry-face-client.js";
import type { DriverCall } from "./faulty-driver.js";
import { notAdopted } from "./faulty-service.js";

type Ending = "open" | "close" | "copy";

/** How a call of a client ends whose driver call was refused: the code, and what comes before CUDA's words. */
const endings: Readonly<Record<Ending, readonly [code: string, text: RegExp]>> = {
  open: ["INVALID_ARGUMENT", /^failed to register shared memory region '\w+': invalid args: $/],
  close: [
    "INTERNAL",
    /^(failed to register shared memory region '\w+': )?failed to close CUDA IPC handle: $/,
  ],
  copy: ["INTERNAL", /^failed to copy the memory of shared memory region '\w+': $/],
};

/** As what the client hears of it when a call of this function is refused; nothing of some. */
const heardAs: Readonly<Record<string, readonly Ending[]>> = {
  cuDevicePrimaryCtxRetain: ["open"],
  cuIpcOpenMemHandle_v2: ["open"],
  cuMemGetAddressRange_v2: ["open"],
  cuIpcCloseMemHandle: ["close"],
  cuMemcpyDtoH_v2: ["copy"],
  cuMemcpyHtoD_v2: ["copy"],
  cuStreamSynchronize: ["copy"],
  // It comes before each of them.
  cuCtxPushCurrent_v2: ["open", "close", "copy"],
  // What was asked for was done.
  cuCtxPopCurrent_v2: [],
  cuDevicePrimaryCtxRelease_v2: [],
  // The result is told by its number alone.
  cuGetErrorName: [],
  // The devices are told without it.
  cuMemGetInfo_v2: [],
};

const unregisterAllFailed = "Failed to unregister the following cuda shared memory regions: a ,";

/** What is wrong with what a client was told of a refused call of the driver; null if nothing is. */
export function misheard(
  { name }: DriverCall,
  refused: string,
  told: FaceRefusal | null,
  mayBeUnheard = false,
): string | null {
  const expected = heardAs[name];
  if (expected === undefined) return "no client is told of this function";
  if (told === null) {
    return expected.length === 0 || mayBeUnheard ? null : "nobody was told";
  }
  // It may be about many, and has Triton's text.
  if (told.message === unregisterAllFailed && told.code === "INTERNAL" && expected.includes("close"))
    return null;
  const [before, after, ...rest] = told.message.split(refused);
  if (before === undefined || after === undefined || rest.length > 0) {
    return `'${told.message}' does not name ${refused} once`;
  }
  const isExpected = expected.some((ending) => {
    const [code, text] = endings[ending];
    const isCode = told.code === code || (told.code === notAdopted && ending === "open");
    return isCode && text.test(before);
  });
  if (!isExpected) return `it was told as ${told.code}: ${told.message}`;
  if (/0x[0-9a-f]{6}|\d{10}/i.test(told.message)) return `'${told.message}' has a pointer`;
  return null;
}
