import { malformedAnswer } from "./errors.js";

/** One event of a `text/event-stream`. */
export interface StreamEvent {
  readonly type: string;
  readonly data: string;
  /** Of this event or of the last one before it that had one; empty if none had. */
  readonly id: string;
}

/** Far more characters than an event of the service ever has. */
const maxEventLength = 1 << 20;

/**
 * The events of an answer, read as the HTML standard has it, until the answer ends; one that it ends within is left
 * out. Throws UNKNOWN for an event without an end. Lets go of the answer when its reader stops.
 */
export async function* eventsIn(answer: Response): AsyncGenerator<StreamEvent, void> {
  let data: string[] = [];
  let length = 0;
  let type = "";
  let id = "";
  for await (const line of linesIn(answer)) {
    if (line === "") {
      if (data.length > 0) yield { type: type || "message", data: data.join("\n"), id };
      data = [];
      length = 0;
      type = "";
      continue;
    }
    const [field, value] = fieldIn(line);
    if (field === "event") type = value;
    else if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "data") {
      data.push(value);
      length += line.length;
      if (length > maxEventLength) throw malformedAnswer(answer);
    }
  }
}

async function* linesIn(answer: Response): AsyncGenerator<string, void> {
  let rest = "";
  let isAfterReturn = false;
  for await (const piece of textOf(answer)) {
    // A line feed after a carriage return belongs to it, also where they came apart.
    const lines = (isAfterReturn && piece.startsWith("\n") ? piece.slice(1) : piece).split(/\r\n|\n|\r/);
    isAfterReturn = piece.endsWith("\r");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    if (rest.length > maxEventLength) throw malformedAnswer(answer);
    yield* lines;
  }
}

async function* textOf(answer: Response): AsyncGenerator<string, void> {
  // Not every browser lets the body itself be iterated.
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const read = await reader?.read();
      if (read?.value === undefined) return;
      const text = decoder.decode(read.value, { stream: true });
      if (text !== "") yield text;
    }
  } finally {
    await reader?.cancel().catch(() => {});
  }
}

/** A comment, which begins with a colon, is a field without a name. */
function fieldIn(line: string): readonly [string, string] {
  const colon = line.indexOf(":");
  if (colon === -1) return [line, ""];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(" ") ? value.slice(1) : value];
}
