import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tree-hash.mjs";

/** Runs `work` while no other setup of this clone runs: two commands started together must not install over each other. */
export async function withSetupLock(work) {
  const lock = join(root, ".setup.lock");
  const own = `${lock}.${process.pid}`;
  let told = false;
  for (;;) {
    try {
      // A link, so that the lock never exists without the name of its holder.
      writeFileSync(own, identity(process.pid));
      linkSync(own, lock);
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    } finally {
      rmSync(own, { force: true });
    }
    const holder = readIfThere(lock);
    const pid = Number.parseInt(holder, 10);
    if (holder !== "" && identity(pid) !== holder) rmSync(lock, { force: true });
    else if (holder !== "" && !told) {
      told = true;
      process.stderr.write(`setup: waiting for the setup that process ${pid} runs ...\n`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const release = () => rmSync(lock, { force: true });
  process.once("exit", release);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  work();
}

function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** A process's number and start time, which together no later process has; no start time if there is none. */
function identity(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The start time is field 22; the name, field 2, may hold anything but ends with the last parenthesis.
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return `${pid}`;
  }
}
