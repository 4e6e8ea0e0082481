import { noSuchSystemRegion, systemSharedMemoryUnsupported } from "../core/refusals.js";
import { answerEmpty, answerJson } from "./answers.js";
import type { Exchange } from "./exchange.js";
import { nameInPath } from "./request-target.js";

/** Where Triton's system shared memory API lives. */
export const systemPath = "/v2/systemsharedmemory";

/** The calls that clients make before the CUDA ones, answered as by a service that holds no such region. */
export const systemSharedMemory = {
  statusAll(exchange: Exchange): Response {
    return answerJson(exchange, "[]");
  },

  status(exchange: Exchange): never {
    throw noSuchSystemRegion(nameInPath(exchange.path, `${systemPath}/region/`));
  },

  unregister(exchange: Exchange): Response {
    return answerEmpty(exchange);
  },

  register(): never {
    throw systemSharedMemoryUnsupported();
  },
};
