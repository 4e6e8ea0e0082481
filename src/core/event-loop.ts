/** How long one piece of work may hold the event loop, in milliseconds. */
const sliceMs = 5;

/** Regions that may come or go, of all those that do so in great number, before others have their turn. */
const regionsATurn = 128;

/** When the slice that is used in this turn of the event loop is over, by `performance.now()`. */
let sliceEnd: number | undefined;
const waitingForSlice: ((end: number) => void)[] = [];

let room = regionsATurn;
const waitingForRoom: (() => void)[] = [];

/**
 * Calls `work` with each item, in order, until it answers false. Where that takes long, whatever else waits for the
 * event loop has its turn every few milliseconds, and everyone who works so shares that time.
 */
export async function inSlices<T>(items: Iterable<T>, work: (item: T) => boolean): Promise<void> {
  let end: number | undefined;
  for (const item of items) {
    if (end === undefined || performance.now() >= end) end = await nextSlice();
    if (!work(item)) return;
  }
}

/** Resolves in another turn of the event loop, once whatever else waits for it has had its own. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Asked for each region by what makes many come or go, which may not wait for anything else at all: undefined, or
 * what to wait for so that others have their turn.
 */
export function roomForAnother(): Promise<void> | undefined {
  if (room === regionsATurn) setImmediate(makeRoom);
  if (room > 0) {
    room--;
    return undefined;
  }
  return new Promise((resolve) => waitingForRoom.push(resolve));
}

/** What is left of this turn's slice if nobody has it, else a slice of its own: one for each turn. */
function nextSlice(): number | Promise<number> {
  if (waitingForSlice.length === 0) {
    const now = performance.now();
    if (sliceEnd === undefined) {
      sliceEnd = now + sliceMs;
      setImmediate(beginSlice);
    }
    if (now < sliceEnd) return sliceEnd;
  }
  return new Promise((resolve) => waitingForSlice.push(resolve));
}

function beginSlice(): void {
  const go = waitingForSlice.shift();
  sliceEnd = undefined;
  if (go === undefined) return;
  sliceEnd = performance.now() + sliceMs;
  setImmediate(beginSlice);
  go(sliceEnd);
}

function makeRoom(): void {
  const going = waitingForRoom.splice(0, regionsATurn);
  room = regionsATurn - going.length;
  if (going.length > 0) setImmediate(makeRoom);
  for (const go of going) go();
}
