import { boolean, hostAddress, integer, port } from "./option.js";

/** What concerns the HTTP face alone. */
export const httpOptions = {
  allowHttp: {
    flag: "allow-http",
    kind: boolean,
    default: true,
    group: "HTTP",
    help: "Serve over HTTP.",
  },
  httpAddress: {
    flag: "http-address",
    kind: hostAddress,
    default: "127.0.0.1",
    group: "HTTP",
    help: "Where HTTP listens. Anyone who reaches it can register and unregister: keep it off open networks.",
  },
  httpPort: {
    flag: "http-port",
    kind: port,
    default: 8000,
    group: "HTTP",
    help: "Port of HTTP; 0 takes a free one, which the start-up line tells.",
  },
  httpMaxInputSize: {
    flag: "http-max-input-size",
    kind: integer(1, 2 ** 28, "BYTES"),
    default: 2 ** 20,
    group: "HTTP",
    help: "Largest JSON request body.",
  },
  allowContents: {
    flag: "allow-contents",
    kind: boolean,
    default: false,
    group: "HTTP",
    help: "Serve GET and PUT /v1/regions/{name}/contents, which read and write registered GPU memory.",
  },
} as const;
