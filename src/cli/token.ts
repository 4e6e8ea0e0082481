import { createHash, randomBytes } from "node:crypto";
import { UsageError } from "../config/usage-error.js";
import { Principals } from "../core/principals.js";
import type { Command, CommandIo, CommandResult } from "./command.js";

/** Makes a token for `--token-file`. */
export const token: Command = {
  help: () => `Usage: cudashm token NAME [--admin]

Makes a random token for NAME. The line for the file of --token-file goes to standard output, the token itself,
which is kept nowhere, to standard error:

  cudashm token alice >>tokens

With --admin, whoever has the token may change the regions of others, and read and write their contents.
`,

  async run(io: CommandIo): Promise<CommandResult> {
    const [name, ...others] = io.args.filter((arg) => arg !== "--admin");
    if (name === undefined || others.length > 0) {
      throw new UsageError([`expected one name, and --admin or nothing, got ${io.args.length} arguments`]);
    }
    const made = randomBytes(32).toString("base64url");
    const mark = io.args.includes("--admin") ? " admin" : "";
    const line = `${name}: ${createHash("sha256").update(made).digest("hex")}${mark}`;
    if (!(Principals.parse(line) instanceof Principals)) {
      throw new UsageError([
        `${JSON.stringify(name)} is no name: expected up to 64 letters, digits and . _ @ -, and not anonymous`,
      ]);
    }
    io.stderr.write(`${made}\n`);
    io.stdout.write(`${line}\n`);
    return { code: 0 };
  },
};
