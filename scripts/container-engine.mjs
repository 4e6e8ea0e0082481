import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/**
 * A container engine for the life of this process: the one that `docker` reaches, or, where CUDASHM_DOCKER_ENGINE names a
 * command that starts and stops one (`up DIR`, `env DIR`, `down DIR`), that one. null if there is none.
 */
export async function startContainerEngine() {
  const command = process.env.CUDASHM_DOCKER_ENGINE ?? "";
  const folder = mkdtempSync(join(tmpdir(), "cudashm-containers-"));
  const env = { ...process.env };
  process.once("exit", () => {
    if (command !== "") spawnSync(command, ["down", folder], { stdio: "ignore" });
    rmSync(folder, { recursive: true, force: true });
  });
  if (command === "") {
    return spawnSync("docker", ["version"], { stdio: "ignore" }).status === 0
      ? createEngine(folder, env)
      : null;
  }
  process.stdout.write(`${await createEngine(folder, env).must(command, "up", folder)}\n`);
  const exports = spawnSync(command, ["env", folder], { encoding: "utf8" }).stdout;
  for (const [, name, value] of exports.matchAll(/(\w+)=(\S+)/g)) env[name] = value;
  return createEngine(folder, env);
}

function createEngine(folder, env) {
  /** How a command ended. Never waits in place: a signal has to be heard in the middle of a build. */
  async function outcome(file, ...args) {
    try {
      const { stdout, stderr } = await promisify(execFile)(file, args, { env, maxBuffer: 2 ** 26 });
      return { status: 0, stdout: stdout.trim(), stderr };
    } catch (error) {
      return { status: error.code, stdout: error.stdout, stderr: error.stderr };
    }
  }

  /** What a command that has to succeed wrote to standard output. */
  async function must(file, ...args) {
    const { status, stdout, stderr } = await outcome(file, ...args);
    if (status === 0) return stdout;
    throw new Error(`${file} ${args.join(" ")} ended with ${status}\n${stdout}${stderr}`);
  }

  return { folder, env, outcome, must, docker: (...args) => must("docker", ...args) };
}
