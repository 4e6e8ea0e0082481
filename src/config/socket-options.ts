import { isSocketPath } from "../listen/unix-socket.js";
import { boolean, type OptionKind, optional } from "./option.js";

const socketPath: OptionKind<string> = {
  placeholder: "PATH",
  expected:
    "an absolute path of at most 107 bytes, in a folder of at most 97, such as /run/cudashm/http.sock",
  isSwitch: false,
  parse: (text) => (isSocketPath(text) ? text : null),
};

const fileMode: OptionKind<number> = {
  placeholder: "OCTAL",
  expected: "three octal digits as of chmod, such as 0660",
  isSwitch: false,
  parse: (text) => (/^0?[0-7]{3}$/.test(text) ? Number.parseInt(text, 8) : null),
};

const group: OptionKind<string> = {
  placeholder: "NAME|GID",
  expected: "the name or the number of a group",
  isSwitch: false,
  parse: (text) => (/^\w[\w.-]*$/.test(text) ? text : null),
};

/** The Unix sockets of both faces. */
export const socketOptions = {
  httpSocket: {
    flag: "http-socket",
    kind: optional(socketPath),
    default: null,
    group: "Unix sockets",
    help: "Serve HTTP on this Unix socket too, without TLS: its file says who may connect.",
  },
  httpTcp: {
    flag: "http-tcp",
    kind: boolean,
    default: true,
    group: "Unix sockets",
    help: "false serves HTTP on --http-socket alone, and on no port.",
  },
  grpcSocket: {
    flag: "grpc-socket",
    kind: optional(socketPath),
    default: null,
    group: "Unix sockets",
    help: "Serve gRPC on this Unix socket too, without TLS: its file says who may connect.",
  },
  grpcTcp: {
    flag: "grpc-tcp",
    kind: boolean,
    default: true,
    group: "Unix sockets",
    help: "false serves gRPC on --grpc-socket alone, and on no port.",
  },
  socketMode: {
    flag: "socket-mode",
    kind: optional(fileMode),
    default: null,
    group: "Unix sockets",
    help: "Mode of the sockets' files: who may write may connect. 0600 unless given, 0660 with --socket-group.",
  },
  socketGroup: {
    flag: "socket-group",
    kind: optional(group),
    default: null,
    group: "Unix sockets",
    help: "Group of the sockets' files; the service's user must be a member.",
  },
} as const;
