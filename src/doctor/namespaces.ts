import { type Finding, ok, problem } from "./finding.js";
import type { Host } from "./host.js";

// The kernel gives the namespaces it starts with these numbers, on every machine.
const hostPidNamespace = "pid:[4026531836]";
const hostIpcNamespace = "ipc:[4026531839]";

/** Whether exporters elsewhere on this machine can be told apart by their process numbers. */
export function pidNamespaceFinding(host: Host): Finding {
  const namespace = host.readLink("/proc/self/ns/pid");
  if (namespace === null) return unreadable("pid_namespace");
  const isHost = namespace === hostPidNamespace;
  if (isHost) return ok("pid_namespace", "the host's PID namespace", { namespace, host: true });
  return problem(
    "WARN",
    "pid_namespace",
    "a PID namespace of this container's own: handles from outside it may be refused with error 201, since two processes can have one number there",
    "share it with every exporter: `--pid=host` or `--pid=container:NAME` (compose: `pid: host`, Kubernetes: `hostPID: true`)",
    { namespace, host: false },
  );
}

/** Whether CUDA's multi-process service, which needs the IPC namespace, can be reached. */
export function ipcNamespaceFinding(host: Host): Finding {
  const namespace = host.readLink("/proc/self/ns/ipc");
  if (namespace === null) return unreadable("ipc_namespace");
  const facts = { namespace, host: namespace === hostIpcNamespace };
  if (facts.host) return ok("ipc_namespace", "the host's IPC namespace", facts);
  if (host.env.CUDA_MPS_PIPE_DIRECTORY === undefined) {
    return ok(
      "ipc_namespace",
      "an IPC namespace of this container's own, which memory handles do without",
      facts,
    );
  }
  return problem(
    "WARN",
    "ipc_namespace",
    "CUDA_MPS_PIPE_DIRECTORY asks for the multi-process service, which an IPC namespace of one's own cannot reach",
    "start the container with `--ipc=host`, or unset the variable",
    facts,
  );
}

function unreadable(check: "pid_namespace" | "ipc_namespace"): Finding {
  const facts = { namespace: null, host: null };
  return problem("WARN", check, "/proc does not tell the namespace", "mount /proc in this container", facts);
}
