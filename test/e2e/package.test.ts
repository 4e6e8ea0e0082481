import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What a module of the package exports, as Node resolves it by its name. */
function exportsOf(specifier: string): string[] {
  const script = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(specifier)})).sort()))`;
  return JSON.parse(
    execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: root, encoding: "utf8" }),
  );
}

test("the package's main export is the registry, with the driver port's errors and the native driver", () => {
  expect(exportsOf("cudashm")).toEqual(
    expect.arrayContaining([
      "DriverError",
      "IpcMemHandle",
      "RegionRegistry",
      "RegistryError",
      "createCudaDriver",
    ]),
  );
});

test("the faces have entries of their own, each with what makes its context", () => {
  expect(exportsOf("cudashm/http")).toEqual(["createFaceContext", "createHttpApp", "listenHttp"]);
  expect(exportsOf("cudashm/grpc")).toEqual(["addGrpcServices", "createFaceContext", "listenGrpc"]);
});

test("importing the package loads no transport", () => {
  const script = `
    await import("cudashm");
    const loaded = process.moduleLoadList.filter((name) => /NativeModule (_http_server|http2)$/.test(name));
    console.log(JSON.stringify(loaded));
  `;
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: root,
    encoding: "utf8",
  });
  expect(JSON.parse(printed)).toEqual([]);
});
