// `npm run setup:clients`: installs the Debian packages that the tests of real clients need, only those that are
// missing. `--missing CLIENT` installs nothing and prints, one a line, what that client lacks on this machine.
import { spawnSync } from "node:child_process";

const command = (name) => ["sh", "-c", `command -v ${name}`];
const library = (name) => ["sh", "-c", `pkg-config --exists ${name}`];

/** What each client needs: the Debian package, and the command that succeeds where it is there in any form. */
const clients = {
  cpp: {
    "g++": command("g++"),
    make: command("make"),
    cmake: command("cmake"),
    "pkg-config": command("pkg-config"),
    "protobuf-compiler": command("protoc"),
    "protobuf-compiler-grpc": command("grpc_cpp_plugin"),
    "libprotobuf-dev": library("protobuf"),
    "libgrpc++-dev": library("grpc++"),
    "libcurl4-openssl-dev": library("libcurl"),
  },
  python: { "python3-venv": ["python3", "-c", "import ensurepip, venv"] },
  curl: { curl: command("curl") },
  browser: { chromium: command("chromium") },
};

const [flag, client] = process.argv.slice(2);
if (flag === undefined) install();
else if (flag === "--missing" && client in clients) {
  for (const name of missing([client])) process.stdout.write(`${name}\n`);
} else {
  fail(2, `usage: setup-clients.mjs [--missing ${Object.keys(clients).join("|")}]`);
}

function install() {
  const packages = missing(Object.keys(clients));
  if (packages.length === 0) {
    process.stderr.write("setup:clients: everything the client tests need is there\n");
    return;
  }
  const line = `apt-get install ${packages.join(" ")}`;
  if (!succeeds(command("apt-get"))) {
    fail(1, `there is no apt-get here; install what your system calls these: ${packages.join(" ")}`);
  }
  if (process.getuid() !== 0) fail(1, `only root may install packages; run: sudo ${line}`);
  aptGet("update", "-q");
  aptGet("install", "-q", "--yes", "--no-install-recommends", ...packages);
  const left = missing(Object.keys(clients));
  if (left.length > 0) fail(1, `installed, and yet not found: ${left.join(" ")}`);
}

function missing(names) {
  return names.flatMap((name) =>
    Object.entries(clients[name])
      .filter(([, probe]) => !succeeds(probe))
      .map(([debianPackage]) => debianPackage),
  );
}

function succeeds([file, ...args]) {
  return spawnSync(file, args, { stdio: "ignore" }).status === 0;
}

function aptGet(...args) {
  process.stderr.write(`setup:clients: apt-get ${args.join(" ")}\n`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const { status } = spawnSync("apt-get", args, { stdio: ["ignore", 2, 2], env });
  if (status !== 0) fail(1, `apt-get ${args[0]} failed; see its message above`);
}

function fail(code, text) {
  process.stderr.write(`setup:clients: ${text}\n`);
  process.exit(code);
}
