import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

const toJson = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)";

/** The documents of a YAML file of the project, merge keys resolved. */
export function readYaml<Document>(python: string, path: string): readonly Document[] {
  return JSON.parse(execFileSync(python, ["-c", toJson, path], { cwd: root, encoding: "utf8" }));
}
