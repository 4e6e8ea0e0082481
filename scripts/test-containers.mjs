// Builds the image, brings the compose project up on a real engine, and looks at what operators rely on. Where there is
// no engine (container-engine.mjs says where one comes from) it says so and counts a skip. The last line is the tally.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startContainerEngine } from "./container-engine.mjs";
import { root } from "./tree-hash.mjs";

const image = `cudashm:test-${process.pid}`;
const [httpPort, grpcPort, metricsPort] = await freePorts(3);
const url = `http://127.0.0.1:${httpPort}`;
/** Every handle that was registered, in base64. */
const handles = [];
const tally = { passed: 0, failed: 0, skipped: 0 };

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

try {
  const engine = await startContainerEngine();
  if (engine === null) {
    tally.skipped++;
    process.stdout.write("skipped: there is no container engine here\n");
  } else await run(engine);
} catch (error) {
  check(error.message, false);
}
process.stdout.write(`${tally.passed} passed, ${tally.failed} failed, ${tally.skipped} skipped\n`);
process.exitCode = tally.failed === 0 ? 0 : 1;

async function run(engine) {
  const override = join(engine.folder, "override.yml");
  writeFileSync(override, JSON.stringify(overrides()));
  const files = [`--file=${join(root, "docker-compose.yml")}`, `--file=${override}`];
  const project = ["compose", ...files, `--project-name=cudashm-test-${process.pid}`];
  const compose = (...args) => engine.docker(...project, ...args);
  // Before the engine itself goes: last in, first out.
  process.prependOnceListener("exit", () => {
    const { env } = engine;
    spawnSync("docker", [...project, "--profile=*", "down", "--timeout=5", "--volumes"], {
      env,
      stdio: "ignore",
    });
    spawnSync("docker", ["image", "rm", "--force", image], { env, stdio: "ignore" });
  });

  const chosen = await compose("config", "--services");
  check(
    "`docker compose up` alone deploys the service for a GPU host, and nothing else",
    chosen === "cudashm",
  );
  await engine.docker("build", "--network=host", "--tag", image, root);
  await looksAtImage(engine);

  await compose("--profile=emulated", "up", "--detach", "--wait", "--wait-timeout=90", "emulated");
  const id = await compose("--profile=emulated", "ps", "--quiet", "emulated");
  await looksAtContainer(engine, id);
  const options = [
    "--rm",
    "--interactive",
    "--network=host",
    "--pid=host",
    "--ipc=host",
    "--read-only",
    image,
  ];
  await shares(engine, "container", 7, "docker", ["run", ...options, "allocate"]);
  // As the image's user: the emulated driver shares memory between processes of one user only.
  const user = ["--reuid=1000", "--regid=1000", "--clear-groups"];
  const main = join(root, "dist", "main.js");
  await shares(engine, "host", 9, "setpriv", [...user, process.execPath, main, "allocate"]);
  const demo = await engine.outcome("docker", ...project, "--profile=demo", "run", "--rm", "demo");
  process.stdout.write(`${demo.stdout}\n`);
  check("the demo's exporter shares memory with the service, both ways", demo.status === 0);
  await endsClean(engine, id);

  const up = await engine.outcome("docker", ...project, "--profile=gpu", "up", "--detach", "cudashm");
  if (up.status !== 0) {
    const told = /could not select device driver "nvidia"/.test(up.stderr);
    check("an engine that has no GPU to give does not start the service for a GPU host", told);
  } else await tellsOfGpu(engine, await compose("--profile=gpu", "ps", "--quiet", "cudashm"));
}

async function looksAtImage({ docker }) {
  const inImage = (entrypoint, ...args) =>
    docker("run", "--rm", "--network=none", "--entrypoint", entrypoint, image, ...args);
  const user = await docker("inspect", "--format={{.Config.User}}", image);
  check("the image runs as a user that is not root", user === "1000:1000");
  const tools = "for tool in cc g++ make python3 npm nvcc curl; do command -v $tool; done; true";
  check("the image has no compiler, no toolkit, no npm", (await inImage("sh", "-c", tools)) === "");
  check("the image tells its version", (await inImage("cudashm", "--version")).startsWith("cudashm "));
}

async function looksAtContainer({ docker, outcome }, id) {
  const inside = (...command) => docker("exec", id, ...command);
  const [told] = JSON.parse(await docker("inspect", id));
  check("the health check in the container says healthy", told.State.Health.Status === "healthy");
  check("the root file system is mounted to be read only", told.HostConfig.ReadonlyRootfs === true);
  const written = await outcome("docker", "exec", id, "sh", "-c", "echo > /opt/cudashm/x");
  check(
    "a write to it fails as one to a read-only file system",
    /Read-only file system/.test(written.stderr),
  );
  check("the process of the service is no root's", (await inside("id", "-u")) === "1000");
  for (const kind of ["pid", "ipc"]) {
    const namespace = `/proc/self/ns/${kind}`;
    const same = (await inside("readlink", namespace)) === readlinkSync(namespace);
    check(`the service has the host's ${kind} namespace`, same);
  }
}

/** An exporter elsewhere registers over HTTP; the service reads what it wrote. */
async function shares({ env }, place, byte, file, args) {
  const flags = ["--driver=emulated", `--fill=${byte}`];
  const exporter = spawn(file, [...args, ...flags], { env, stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(exporter, "close");
  const [body] = await Promise.race([once(createInterface({ input: exporter.stdout }), "line"), ended]);
  handles.push(JSON.parse(body).raw_handle.b64);
  const region = `${url}/v2/cudasharedmemory/region/${place}`;
  const registered = await fetch(`${region}/register`, { method: "POST", body });
  const refusal = await registered.text();
  if (refusal !== "") process.stdout.write(`${refusal}\n`);
  check(`a register from the ${place} is accepted`, registered.status === 200);
  const contents = await fetch(`${url}/v1/regions/${place}/contents`);
  const bytes = Buffer.from(await contents.arrayBuffer());
  check(`the service sees the bytes of the exporter on the ${place}`, bytes.equals(Buffer.alloc(4096, byte)));
  const unregistered = await fetch(`${region}/unregister`, { method: "POST" });
  check(`the region of the ${place} is unregistered`, unregistered.status === 200);
  exporter.stdin.end();
  check(`the exporter on the ${place} ends with code 0`, (await ended)[0] === 0);
}

async function endsClean({ docker }, id) {
  await docker("stop", "--time=20", id);
  const [{ State: state }] = JSON.parse(await docker("inspect", id));
  check("SIGTERM ends the service with code 0", state.ExitCode === 0);
  const lines = (await docker("logs", id)).split("\n");
  check("its last line of log says that it stopped", JSON.parse(lines.at(-1)).msg === "stopped");
  const secrets = handles.flatMap((b64) => [b64, Buffer.from(b64, "base64").toString("hex")]);
  const told = lines.some((line) => secrets.some((secret) => line.includes(secret)));
  check("no line of its log holds a handle that was registered", handles.length === 2 && !told);
}

/** With `--driver cuda` a missing GPU is an error that is told, and no emulation. */
async function tellsOfGpu({ outcome }, id) {
  const asked = (...flags) => outcome("docker", "exec", id, "cudashm", "healthcheck", ...flags);
  let live = await asked("--live");
  for (let i = 0; i < 60 && live.status !== 0; i++) live = await asked("--live");
  check("the service for a GPU host is alive, with a GPU or without", live.status === 0);
  const ready = await asked();
  process.stdout.write(ready.stdout + ready.stderr);
  const saysWhy = ready.status === 1 && /CUDA driver: unavailable: .*libcuda\.so\.1/.test(ready.stderr);
  check("it is ready, or says which driver it lacks", ready.status === 0 || saysWhy);
}

/** Not every engine has a bridge network: on the host's, and on free ports, all the rest of the file is tested. */
function overrides() {
  const addresses = Object.fromEntries(
    ["HTTP", "GRPC", "METRICS"].map((face) => [`CUDASHM_${face}_ADDRESS`, "127.0.0.1"]),
  );
  const ports = {
    CUDASHM_HTTP_PORT: httpPort,
    CUDASHM_GRPC_PORT: grpcPort,
    CUDASHM_METRICS_PORT: metricsPort,
  };
  const service = { image, network_mode: "host", environment: { ...addresses, ...ports }, restart: "no" };
  const demo = { image, network_mode: "host", command: [url] };
  return { services: { cudashm: service, emulated: service, demo } };
}

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function check(what, held) {
  process.stdout.write(`${held ? "ok" : "FAILED"}: ${what}\n`);
  if (held) tally.passed++;
  else tally.failed++;
}
