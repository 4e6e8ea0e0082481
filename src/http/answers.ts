import { exactJson } from "./exact-json.js";
import type { AnswerBody, AnswerHeaders, Exchange } from "./exchange.js";

const json = "application/json";

/** An empty answer. Success is exactly 200: every Triton client takes 201 and 204 for failures. */
export function answerEmpty(exchange: Exchange, status: 200 | 400 = 200, headers?: AnswerHeaders): Response {
  return exchange.answer(status, json, "", headers);
}

/** Success with JSON that is ready to send. */
export function answerJson(exchange: Exchange, body: AnswerBody): Response {
  return exchange.answer(200, json, body);
}

/** Success with an object, in its order; a bigint keeps every digit. */
export function answerObject(exchange: Exchange, object: Readonly<Record<string, unknown>>): Response {
  return answerJson(exchange, exactJson(object));
}

/** `{"error":"..."}`, which is what every client looks for in an answer that is not 200. */
export function answerError(
  exchange: Exchange,
  status: number,
  text: string,
  headers?: AnswerHeaders,
): Response {
  return exchange.answer(status, json, JSON.stringify({ error: text }), headers);
}
