import type { Call, Connection } from "./connection.js";
import { malformedAnswer, refusalIn } from "./errors.js";

/** Sends a call and gives what `decode` makes of the answer's text; what it throws at is a malformed answer. */
export function decoded<T>(connection: Connection, call: Call, decode: (text: string) => T): Promise<T> {
  return connection.exchange(call, async (answer) => {
    const text = await textOf(answer);
    try {
      return decode(text);
    } catch (cause) {
      throw malformedAnswer(answer, cause);
    }
  });
}

/** A call's body of JSON. */
export function jsonBody(content: string): NonNullable<Call["body"]> {
  return { contentType: "application/json", content };
}

// A page that says 200 and has words in it was not the service's answer, so nothing was registered.
export async function emptyAnswer(answer: Response): Promise<void> {
  if ((await textOf(answer)) !== "") throw malformedAnswer(answer);
}

/** The text of a success, which is exactly 200. */
async function textOf(answer: Response): Promise<string> {
  const text = await answer.text();
  if (answer.status !== 200) throw refusalIn(answer, text);
  return text;
}
