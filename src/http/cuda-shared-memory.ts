import { EncodedRegions } from "../core/encoded-regions.js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { invalidArguments } from "../core/refusals.js";
import { assertRegionName, regionNameProblem } from "../core/region-name.js";
import { answerEmpty, answerJson } from "./answers.js";
import { callContext, callerContext } from "./call-context.js";
import { assertClientShm } from "./client-shm.js";
import type { Exchange } from "./exchange.js";
import { parseRegisterBody } from "./register-body.js";
import { nameInPath } from "./request-target.js";
import { encodeStatuses, statusJson } from "./status-json.js";

/** Where the CUDA shared memory API lives. */
export const cudaPath = "/v2/cudasharedmemory";
const regionPath = `${cudaPath}/region/`;

/** Triton's CUDA shared memory calls. `maxInputSize` is the largest register body in bytes. */
export function createCudaSharedMemory(context: FaceContext, maxInputSize: number) {
  const { registry } = context;
  const statuses = new EncodedRegions(registry, statusJson);

  return {
    statusAll(exchange: Exchange): Response | Promise<Response> {
      const json = statuses.visibleTo(callerContext(exchange));
      if (json instanceof Promise) return json.then((made) => answerJson(exchange, made));
      return answerJson(exchange, json);
    },

    status(exchange: Exchange): Response {
      const name = nameInPath(exchange.path, regionPath);
      assertRegionName(name);
      return answerJson(exchange, encodeStatuses([registry.status(name, callerContext(exchange))]));
    },

    async register(exchange: Exchange): Promise<Response> {
      assertClientShm(context);
      const name = nameInPath(exchange.path, regionPath);
      const problem = regionNameProblem(name);
      if (problem !== null) throw invalidArguments(name, problem);
      const { handle, deviceId, byteSize } = parseRegisterBody(await exchange.readBody(maxInputSize));
      await registry.register({ name, handle, deviceId, byteSize }, callContext(exchange, context));
      return answerEmpty(exchange);
    },

    registerWithoutName(): never {
      assertClientShm(context);
      throw new RegistryError(
        "INVALID_ARGUMENT",
        "'region name' is necessary to register cuda shared memory region",
      );
    },

    async unregister(exchange: Exchange): Promise<Response> {
      const name = nameInPath(exchange.path, regionPath);
      assertRegionName(name);
      await registry.unregister(name, callContext(exchange, context));
      return answerEmpty(exchange);
    },

    async unregisterAll(exchange: Exchange): Promise<Response> {
      await registry.unregisterAll(callContext(exchange, context));
      return answerEmpty(exchange);
    },
  };
}
