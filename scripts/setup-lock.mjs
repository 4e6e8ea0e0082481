import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tree-hash.mjs";

/** Runs `work` while no other setup of this clone runs: two commands started together must not install over each other. */
export async function withSetupLock(work) {
  const lock = join(root, ".setup.lock");
  let told = false;
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const holder = Number(existsSync(lock) ? readFileSync(lock, "utf8") : 0);
    if (holder > 0 && !isAlive(holder)) rmSync(lock, { force: true });
    else if (!told) {
      told = true;
      process.stderr.write(`setup: waiting for the setup that process ${holder} runs ...\n`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const release = () => rmSync(lock, { force: true });
  process.once("exit", release);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  work();
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
