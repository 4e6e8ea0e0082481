import type { Case } from "./case.js";
import { contentsGrpc, contentsHttp } from "./cases/contents.js";
import { core } from "./cases/core.js";
import { grpc } from "./cases/grpc.js";
import { grpcCpp } from "./cases/grpc-cpp.js";
import { http } from "./cases/http.js";
import { memory } from "./cases/memory.js";
import { start } from "./cases/start.js";
import { statusGrpc, statusHttp } from "./cases/status.js";

/** Every case, in the order in which they run. */
export const cases: readonly Case[] = [
  http,
  grpc,
  grpcCpp,
  core,
  statusHttp,
  statusGrpc,
  memory,
  contentsHttp,
  contentsGrpc,
  start,
];
