import { exitingText, RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { answerEmpty, answerObject } from "./answers.js";
import type { Exchange } from "./exchange.js";

/** Health and metadata, as KServe's protocol has them. */
export function createServiceState(context: FaceContext) {
  const { name, version, extensions, instanceId, epoch } = context.info;

  return {
    metadata(exchange: Exchange): Response {
      return answerObject(exchange, {
        name,
        version,
        extensions,
        cuda_driver: context.cudaDriver(),
        instance_id: instanceId,
        epoch,
      });
    },

    live(exchange: Exchange): Response {
      assertNotExiting(context);
      return context.isLive?.() === false ? answerEmpty(exchange, 400) : answerEmpty(exchange);
    },

    ready(exchange: Exchange): Response {
      assertNotExiting(context);
      return context.readiness() === "ready" ? answerEmpty(exchange) : answerEmpty(exchange, 400);
    },
  };
}

function assertNotExiting(context: FaceContext): void {
  if (context.readiness() === "exiting") throw new RegistryError("UNAVAILABLE", exitingText);
}
