import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config.js";
import { operations } from "../../src/http/operations.js";
import { describePython } from "../clients/python/environment.js";
import { readYaml, root } from "./yaml.js";

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Container {
  readonly args: readonly string[];
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly securityContext: unknown;
  readonly resources: { readonly limits: Readonly<Record<string, string>> };
}

interface PodSpec {
  readonly hostPID: boolean;
  readonly hostIPC: boolean;
  readonly runtimeClassName: string;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: unknown;
  readonly containers: readonly Container[];
}

type Labels = Readonly<Record<string, string>>;

interface DaemonSet {
  readonly metadata: { readonly namespace: string };
  readonly spec: {
    readonly selector: { readonly matchLabels: Labels };
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec };
  };
}

interface Service {
  readonly spec: {
    readonly selector: Labels;
    readonly internalTrafficPolicy: string;
    readonly ports: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[];
  };
}

interface NetworkPolicy {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Labels };
    readonly policyTypes: readonly string[];
    readonly egress?: unknown;
    readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
  };
}

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string }[];
}

const folder = "deploy/kubernetes";
const files = readdirSync(join(root, folder)).filter((file) => file !== "kustomization.yaml");

describePython("the Kubernetes manifests", ["manifests"], ({ manifests: python }) => {
  const read = <Document>(file: string) => readYaml<Document>(python, `${folder}/${file}`)[0] as Document;
  const daemonSet = read<DaemonSet>("daemonset.yaml");
  const service = read<Service>("service.yaml");
  const policy = read<NetworkPolicy>("network-policy.yaml");
  const kustomization = read<Kustomization>("kustomization.yaml");
  const { labels } = daemonSet.spec.template.metadata;
  const pod = daemonSet.spec.template.spec;
  const [container] = pod.containers as readonly [Container];
  const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  const { config, warnings } = loadConfig(container.args.slice(1), env);

  test.each(["1.28.0", "1.37.0"])("are what Kubernetes %s allows, to the last property", (version) => {
    const paths = files.map((file) => `${folder}/${file}`);
    const validate = ["-m", "kubernetes_validate", "--strict", "-k", version, ...paths];
    const { status, stdout, stderr } = spawnSync(python, validate, { cwd: root, encoding: "utf8" });
    expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: "" });
    for (const path of paths) expect(stdout).toContain(`${path} passed`);
  });

  test("kustomize takes every one of them, into one namespace, and sets the image", () => {
    expect([...kustomization.resources].sort()).toEqual([...files].sort());
    expect(kustomization.namespace).toBe(daemonSet.metadata.namespace);
    expect(kustomization.images.map(({ name }) => name)).toEqual([container.image]);
  });

  test("the flags and variables are the service's, on NVIDIA's driver or none", () => {
    expect(container.args[0]).toBe("serve");
    expect(warnings).toEqual([]);
    expect(config.driver).toBe("cuda");
  });

  test("the ports are those that the service listens on, on every address", () => {
    expect([config.httpAddress, config.grpcAddress, config.metricsAddress]).toEqual([
      "0.0.0.0",
      "0.0.0.0",
      "0.0.0.0",
    ]);
    expect(
      Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort])),
    ).toEqual({
      http: config.httpPort,
      grpc: config.grpcPort,
      metrics: config.metricsPort,
    });
  });

  test("probes ask paths that the service serves: alive for a restart, ready for traffic", () => {
    const paths = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(
      ({ httpGet }) => `${httpGet.port} ${httpGet.path}`,
    );
    const { serverLive, serverReady } = operations;
    expect(paths).toEqual([`http ${serverLive.path}`, `http ${serverLive.path}`, `http ${serverReady.path}`]);
  });

  test("the pod shares the node's PID and IPC namespaces and runs with NVIDIA's runtime", () => {
    expect(pod).toMatchObject({ hostPID: true, hostIPC: true, runtimeClassName: "nvidia" });
    expect(env).toMatchObject({
      NVIDIA_VISIBLE_DEVICES: "all",
      NVIDIA_DRIVER_CAPABILITIES: "compute,utility",
    });
    expect(container.resources.limits).not.toHaveProperty(["nvidia.com/gpu"]);
  });

  test("the pod runs as the image's user, cannot write its root and has no capability", () => {
    const [uid, gid] = (/^USER (.+)$/m.exec(readFileSync(join(root, "Dockerfile"), "utf8"))?.[1] ?? "").split(
      ":",
    );
    expect(pod.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: Number(uid),
      runAsGroup: Number(gid),
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  });

  test("a stop waits longer than the service may take", () => {
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(config.exitTimeoutSecs);
  });

  test("the Service leads to the registry of the caller's own node, by ports of the pod", () => {
    expect(service.spec.internalTrafficPolicy).toBe("Local");
    expect(labels).toMatchObject(service.spec.selector);
    expect(labels).toMatchObject(daemonSet.spec.selector.matchLabels);
    expect(service.spec.ports.map(({ port, targetPort }) => `${targetPort} ${port}`)).toEqual([
      `http ${config.httpPort}`,
      `grpc ${config.grpcPort}`,
    ]);
  });

  test("the NetworkPolicy is about these pods, names ports of theirs, and lets nothing out", () => {
    expect(labels).toMatchObject(policy.spec.podSelector.matchLabels);
    expect(policy.spec.policyTypes).toEqual(["Ingress", "Egress"]);
    expect(policy.spec.egress).toBeUndefined();
    const named = policy.spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port));
    expect(named.sort()).toEqual(container.ports.map(({ name }) => name).sort());
  });
});
