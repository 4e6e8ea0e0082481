import { boolean } from "./option.js";

/** What concerns the doctor's report over HTTP. */
export const doctorOptions = {
  allowDoctor: {
    flag: "allow-doctor",
    kind: boolean,
    default: false,
    group: "HTTP",
    help: "Serve GET /v1/doctor, the report of `cudashm doctor`. It tells about this machine: driver, devices, user, namespaces.",
  },
} as const;
