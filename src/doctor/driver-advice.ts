import { dirname, resolve } from "node:path";
import type { DriverOutcome } from "./driver.js";
import type { Host } from "./host.js";

const stubLibraryCode = 34;
const noDeviceCode = 100;
const mostDevices = 32;

/** What to do where the driver is missing, broken, or another than may be meant. */
export function driverAdvice(outcome: DriverOutcome, host: Host): string {
  const { preference, failure } = outcome;
  if (failure === null)
    return `${fallbackAdvice(outcome, host)}; if no GPU is meant, say so with --driver emulated`;
  if (failure.why === "unanswered") return "look for NVRM and Xid lines in the kernel's log (dmesg); reboot";
  if (preference === "emulated") return "mend what the reason names: the emulated driver needs no GPU";
  if (failure.cudaCode === stubLibraryCode) {
    const folder = libraryFolders(host).find((path) => path.endsWith("/stubs"));
    return `take the CUDA toolkit's ${folder ?? "folder of stubs"} out of LD_LIBRARY_PATH, so that the driver is found`;
  }
  switch (failure.why) {
    case "no_gpu":
      return noGpuAdvice(failure.cudaCode === noDeviceCode, host);
    case "refused":
      return "see whether nvidia-smi works; after an update of the driver reboot, else install it anew";
    case "unusable":
      return "do what the reason says";
  }
}

function fallbackAdvice({ libraryPath }: DriverOutcome, host: Host): string {
  const folder = libraryPath === null ? null : dirname(libraryPath);
  const found = libraryFolders(host).find((path) => path === folder);
  return found === undefined ? noGpuAdvice(false, host) : `take ${found} out of LD_LIBRARY_PATH`;
}

function noGpuAdvice(hasLibrary: boolean, host: Host): string {
  const visible = host.env.CUDA_VISIBLE_DEVICES;
  if (hasLibrary && visible !== undefined) {
    return `CUDA_VISIBLE_DEVICES=${visible} may hide every device: unset it, or name existing ones`;
  }
  // The kernel's driver shows itself by these files, whatever of its library is here.
  if (host.exists("/dev/nvidiactl")) {
    return hasDeviceFile(host)
      ? "the GPU is here, its driver's library is not: start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
      : "the driver is here, a GPU is not: give the container one (`--gpus all`)";
  }
  return "install NVIDIA's driver; start a container with NVIDIA's runtime and a GPU (`--gpus all`)";
}

function hasDeviceFile(host: Host): boolean {
  return Array.from({ length: mostDevices }, (_, index) => `/dev/nvidia${index}`).some((path) =>
    host.exists(path),
  );
}

function libraryFolders(host: Host): string[] {
  return (host.env.LD_LIBRARY_PATH ?? "")
    .split(":")
    .filter((path) => path !== "")
    .map((path) => resolve(path));
}
