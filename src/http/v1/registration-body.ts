import type { Exporter } from "../../core/exporter.js";
import type { RegisterRequest } from "../../core/region.js";
import { handleFromBase64 } from "../base64.js";
import { parseExactJson } from "../request-json.js";
import { Members } from "./members.js";

/** More than any process has; which there are is for the core to say. */
const maxPidField = 2n ** 31n - 1n;

/** What a register's body says; the name is in the path. Throws INVALID_ARGUMENT for the first thing that is wrong. */
export function parseRegistration(body: Uint8Array): Omit<RegisterRequest, "name"> {
  const root = new Members(parseExactJson(body), [
    "raw_handle",
    "device_id",
    "device_uuid",
    "byte_size",
    "offset",
    "lease_seconds",
    "exporter",
    "labels",
    "replace_generation",
    "dry_run",
  ]);
  const rawHandle = new Members(root.required("raw_handle", root.value("raw_handle")), ["b64"], "raw_handle");
  return {
    handle: handleFromBase64(rawHandle.required("b64", rawHandle.text("b64"))),
    deviceId: root.whole("device_id"),
    deviceUuid: root.text("device_uuid"),
    byteSize: root.required("byte_size", root.whole("byte_size")),
    offset: root.whole("offset"),
    leaseMs: root.seconds("lease_seconds"),
    exporter: exporterIn(root.value("exporter")),
    labels: root.texts("labels"),
    replaces: root.whole("replace_generation"),
    isDryRun: root.flag("dry_run"),
  };
}

function exporterIn(value: unknown): Exporter | undefined {
  if (value === undefined) return undefined;
  const exporter = new Members(value, ["pid", "start_time", "boot_id", "pid_namespace"], "exporter");
  return {
    pid: Number(exporter.required("pid", exporter.whole("pid", maxPidField))),
    startTime: exporter.required("start_time", exporter.whole("start_time")),
    bootId: exporter.required("boot_id", exporter.text("boot_id")),
    pidNamespace: exporter.required("pid_namespace", exporter.whole("pid_namespace")),
  };
}
