import { boolean, optional, text } from "./option.js";

const file = optional(text("FILE"));

/** TLS of both faces. gRPC's flags are Triton's; HTTP's are named after them. */
export const tlsOptions = {
  httpUseSsl: {
    flag: "http-use-ssl",
    kind: boolean,
    default: false,
    group: "TLS",
    help: "Serve HTTPS instead of HTTP on the port; needs --http-server-cert and --http-server-key.",
  },
  httpUseSslMutual: {
    flag: "http-use-ssl-mutual",
    kind: boolean,
    default: false,
    group: "TLS",
    help: "As --http-use-ssl, and let only clients in whose certificate is signed by one in --http-root-cert.",
  },
  httpServerCert: {
    flag: "http-server-cert",
    kind: file,
    default: null,
    group: "TLS",
    help: "Certificate of HTTPS in PEM, followed by those between it and the root. Read again when it changes.",
  },
  httpServerKey: {
    flag: "http-server-key",
    kind: file,
    default: null,
    group: "TLS",
    help: "Private key of that certificate in PEM, without a passphrase.",
  },
  httpRootCert: {
    flag: "http-root-cert",
    kind: file,
    default: null,
    group: "TLS",
    help: "Certificates in PEM that sign clients' certificates, for --http-use-ssl-mutual.",
  },
  grpcUseSsl: {
    flag: "grpc-use-ssl",
    kind: boolean,
    default: false,
    group: "TLS",
    help: "Serve gRPC over TLS on the port; needs --grpc-server-cert and --grpc-server-key.",
  },
  grpcUseSslMutual: {
    flag: "grpc-use-ssl-mutual",
    kind: boolean,
    default: false,
    group: "TLS",
    help: "As --grpc-use-ssl, and let only clients in whose certificate is signed by one in --grpc-root-cert.",
  },
  grpcServerCert: {
    flag: "grpc-server-cert",
    kind: file,
    default: null,
    group: "TLS",
    help: "Certificate of gRPC in PEM, followed by those between it and the root. Read again when it changes.",
  },
  grpcServerKey: {
    flag: "grpc-server-key",
    kind: file,
    default: null,
    group: "TLS",
    help: "Private key of that certificate in PEM, without a passphrase.",
  },
  grpcRootCert: {
    flag: "grpc-root-cert",
    kind: file,
    default: null,
    group: "TLS",
    help: "Certificates in PEM that sign clients' certificates, for --grpc-use-ssl-mutual.",
  },
} as const;
