import { integer, oneOf, optional, text } from "./option.js";

/** Which driver to load: for every command that loads one. */
export const driverOptions = {
  driver: {
    flag: "driver",
    kind: oneOf("auto", "cuda", "emulated"),
    default: "auto",
    group: "CUDA driver",
    help: "cuda: NVIDIA's libcuda.so.1. emulated: our own on host memory, for machines with no GPU. auto: cuda where it loads and finds a device, else emulated with a warning.",
  },
  driverLibrary: {
    flag: "driver-library",
    kind: optional(text("PATH")),
    default: null,
    group: "CUDA driver",
    help: "Load this file in place of the driver library chosen by --driver.",
  },
} as const;

/** What concerns the driver of the service. */
export const serviceDriverOptions = {
  ...driverOptions,
  contextLingerSecs: {
    flag: "context-linger-secs",
    kind: integer(0, 2_000_000, "SECONDS"),
    default: 30,
    group: "CUDA driver",
    help: "How long a device's CUDA context outlives the last region on it; 0 releases it at once.",
  },
} as const;
