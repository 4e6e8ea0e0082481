import { inSlices } from "../../core/event-loop.js";
import type { FaceContext } from "../../core/face-context.js";
import { invalidArguments } from "../../core/refusals.js";
import { regionNameProblem } from "../../core/region-name.js";
import { answerJson, answerObject } from "../answers.js";
import { callContext, callerContext } from "../call-context.js";
import { assertClientShm } from "../client-shm.js";
import { exactJson } from "../exact-json.js";
import type { Exchange } from "../exchange.js";
import { nameInPath } from "../request-target.js";
import { durationIn, flagIn, readQuery, textIn, uint64In, wordIn } from "./query.js";
import { regionJson } from "./region-json.js";
import { regionNameIn, regionsPath } from "./region-path.js";
import { parseRegistration } from "./registration-body.js";
import { parseRenewal } from "./renewal-body.js";
import { regionStates } from "./words.js";

/** Regions in full: whose, until when, of which exporter. `maxInputSize` is the largest body in bytes. */
export function createRegions(context: FaceContext, maxInputSize: number) {
  const { registry } = context;

  return {
    async list(exchange: Exchange): Promise<Response> {
      const query = readQuery(exchange.query, [
        "owner",
        "device",
        "state",
        "label_prefix",
        "page_size",
        "page_token",
      ]);
      const pageSize = uint64In(query, "page_size");
      const page = await registry.list(
        {
          owner: textIn(query, "owner"),
          device: textIn(query, "device"),
          state: wordIn(query, "state", regionStates),
          labelPrefix: textIn(query, "label_prefix"),
          pageSize: pageSize === undefined ? undefined : Number(pageSize),
          pageToken: textIn(query, "page_token"),
        },
        callerContext(exchange),
      );
      const regions: string[] = [];
      await inSlices(page.regions, (region) => {
        regions.push(exactJson(regionJson(region)));
        return true;
      });
      const token = JSON.stringify(page.nextPageToken);
      return answerJson(
        exchange,
        `{"regions":[${regions.join(",")}],"next_page_token":${token},"revision":${page.revision}}`,
      );
    },

    async get(exchange: Exchange): Promise<Response> {
      const name = regionNameIn(exchange.path);
      const waitMs = durationIn(readQuery(exchange.query, ["wait"]), "wait");
      const region =
        waitMs === undefined
          ? registry.status(name, callerContext(exchange))
          : await registry.waitFor(name, waitMs, callContext(exchange, context));
      return answerObject(exchange, regionJson(region));
    },

    async register(exchange: Exchange): Promise<Response> {
      assertClientShm(context);
      const name = nameInPath(exchange.path, `${regionsPath}/`);
      const problem = regionNameProblem(name);
      if (problem !== null) throw invalidArguments(name, problem);
      readQuery(exchange.query, []);
      const request = parseRegistration(await exchange.readBody(maxInputSize));
      const call = callContext(exchange, context);
      const region = await registry.register({ ...request, name, isIdempotent: true }, call);
      return answerObject(exchange, regionJson(region));
    },

    async release(exchange: Exchange): Promise<Response> {
      const name = regionNameIn(exchange.path);
      const query = readQuery(exchange.query, ["wait", "force", "generation"]);
      const { isClosed, pins } = await registry.release(
        name,
        {
          waitMs: durationIn(query, "wait"),
          isForced: flagIn(query, "force"),
          generation: uint64In(query, "generation"),
        },
        callContext(exchange, context),
      );
      return answerObject(exchange, { closed: isClosed, pins });
    },

    async renew(exchange: Exchange): Promise<Response> {
      const name = regionNameIn(exchange.path);
      readQuery(exchange.query, []);
      const renewal = parseRenewal(await exchange.readBody(maxInputSize));
      const region = await registry.renew(name, renewal, callContext(exchange, context));
      return answerObject(exchange, regionJson(region));
    },
  };
}
