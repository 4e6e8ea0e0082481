import { boolean, hostAddress, integer, maxTimerMs, port } from "./option.js";

const grpcJsLacksIt = "the gRPC library has no such setting";

/** What concerns the gRPC face alone. */
export const grpcOptions = {
  allowGrpc: {
    flag: "allow-grpc",
    kind: boolean,
    default: true,
    group: "gRPC",
    help: "Serve over gRPC.",
  },
  grpcAddress: {
    flag: "grpc-address",
    kind: hostAddress,
    default: "127.0.0.1",
    group: "gRPC",
    help: "Where gRPC listens.",
  },
  grpcPort: {
    flag: "grpc-port",
    kind: port,
    default: 8001,
    group: "gRPC",
    help: "Port of gRPC; 0 takes a free one, which the start-up line tells.",
  },
  grpcKeepaliveTime: {
    flag: "grpc-keepalive-time",
    kind: integer(1, maxTimerMs, "MS"),
    default: 300_000,
    group: "gRPC",
    help: "Milliseconds between the pings by which a dead client is found.",
  },
  grpcKeepaliveTimeout: {
    flag: "grpc-keepalive-timeout",
    kind: integer(1, maxTimerMs, "MS"),
    default: 20_000,
    group: "gRPC",
    help: "Milliseconds a ping may stay unanswered before the connection is closed.",
  },
  grpcKeepalivePermitWithoutCalls: {
    flag: "grpc-keepalive-permit-without-calls",
    kind: boolean,
    default: false,
    group: "gRPC",
    help: "Ping clients that have no call open.",
    withoutEffect: `${grpcJsLacksIt} for servers`,
  },
  grpcHttp2MaxPingsWithoutData: {
    flag: "grpc-http2-max-pings-without-data",
    kind: integer(0, maxTimerMs),
    default: 2,
    group: "gRPC",
    help: "Pings sent with no data in between.",
    withoutEffect: grpcJsLacksIt,
  },
  grpcHttp2MinRecvPingIntervalWithoutData: {
    flag: "grpc-http2-min-recv-ping-interval-without-data",
    kind: integer(0, maxTimerMs, "MS"),
    default: 300_000,
    group: "gRPC",
    help: "Milliseconds a client must leave between pings.",
    withoutEffect: `${grpcJsLacksIt}, clients may ping as often as they like`,
  },
  grpcHttp2MaxPingStrikes: {
    flag: "grpc-http2-max-ping-strikes",
    kind: integer(0, maxTimerMs),
    default: 2,
    group: "gRPC",
    help: "Pings that come too early before a client is sent away.",
    withoutEffect: `${grpcJsLacksIt}, no client is sent away for its pings`,
  },
} as const;
