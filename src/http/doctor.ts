import { orAborted } from "../core/abort.js";
import { RegistryError } from "../core/errors.js";
import type { FaceContext } from "../core/face-context.js";
import { answerJson } from "./answers.js";
import type { Exchange } from "./exchange.js";

/** The doctor's report, made anew. Refused where the service does not offer one. */
export function createDoctor({ diagnose, shutdown }: FaceContext) {
  return async (exchange: Exchange): Promise<Response> => {
    if (diagnose === undefined) {
      throw new RegistryError(
        "PERMISSION_DENIED",
        "the doctor's report is not served; start the service with --allow-doctor to serve it",
      );
    }
    return answerJson(exchange, await orAborted(diagnose(), exchange.signal(shutdown)));
  };
}
