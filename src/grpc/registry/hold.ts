import { abortError, type CallSignal, untilDoneOrAborted } from "../../core/abort.js";
import { RegistryError } from "../../core/errors.js";
import type { FaceContext } from "../../core/face-context.js";
import { exiting } from "../../core/refusals.js";
import type { Hold, Sessions } from "../../core/sessions.js";
import type { GrpcCallContext } from "../call-context.js";
import * as wire from "../gen/cudashm/v1/registry.js";
import type { ServerStreamMethod } from "../server-stream.js";
import { encodeMessage } from "../wire.js";
import { durationFromWire } from "./durations.js";

/** A session, held by the stream that tells its secret. */
export function createHold({ registry }: FaceContext): ServerStreamMethod<wire.HoldRequest> {
  return {
    path: wire.RegistryService.hold.path,
    operation: "holdSession",
    request: wire.HoldRequest,
    messageFields: [2],
    async *handle(request, call) {
      const hold = take(registry.sessions, request, call);
      // Sessions have a limit of their own, and a client that holds one asks for nothing.
      call.makeRoom();
      try {
        yield encodeMessage(wire.HoldResponse, { sessionId: hold.session.id, secret: hold.secret });
        throw await endOf(hold, call.signal);
      } finally {
        hold.release();
      }
    },
  };
}

function take(sessions: Sessions, { resume, resumeGrace }: wire.HoldRequest, call: GrpcCallContext): Hold {
  const resumeGraceMs = durationFromWire("resume_grace", resumeGrace);
  if (resume === "") return sessions.open({ caller: call, resumeGraceMs: resumeGraceMs ?? 0 });
  if (resumeGraceMs === undefined) return sessions.resume(resume, call);
  throw new RegistryError(
    "INVALID_ARGUMENT",
    "a session keeps the resume_grace that it was opened with; leave it out to resume one",
  );
}

/** Resolves with how the stream ends, once it has to. */
async function endOf({ ended }: Hold, signal: CallSignal): Promise<RegistryError> {
  let isStopping = false;
  const over = ended.then((why) => {
    isStopping = why === "stopping";
  });
  await untilDoneOrAborted(over, signal);
  if (signal.aborted) return abortError(signal);
  if (isStopping) return exiting();
  return new RegistryError("FAILED_PRECONDITION", "the session was taken over by another stream");
}
