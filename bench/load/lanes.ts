import { quantile } from "../statistics.js";

/** A sequence of requests, one after the other; undefined ends it. */
export interface Lane<Request> {
  next(): Request | undefined;
}

/** What sends a request and tells when its answer is complete, with the bytes of its body. */
export interface Sender<Request> {
  send(request: Request, done: (bytes: number) => void): void;
  /** Rejects when an answer is not what it should be, or the connection breaks. */
  readonly failed: Promise<never>;
}

export interface Timing {
  /** Requests that count. */
  readonly requests: number;
  readonly elapsedSeconds: number;
  /** The sum of how long those requests took. */
  readonly waitedSeconds: number;
  readonly p50Micros: number;
  readonly p99Micros: number;
  /** Of the bodies of all answers. */
  readonly bytes: number;
}

/** Requests that do not count are sent all the same. */
export interface Counted {
  readonly counts: boolean;
}

const keptLatencies = 2 ** 20;

/** Sends every lane's requests, the lanes side by side, until all have ended. */
export async function drive<Request extends Counted>(
  lanes: readonly Lane<Request>[],
  senderOf: (lane: number) => Sender<Request>,
): Promise<Timing> {
  const latencies = new Float64Array(keptLatencies);
  let [requests, waited, bytes] = [0, 0, 0];
  const startedAt = performance.now();
  let endedAt = startedAt;

  const run = (lane: Lane<Request>, sender: Sender<Request>): Promise<void> =>
    new Promise((resolve) => {
      let current: Request | undefined;
      let sentAt = 0;
      // One closure a lane, not one a request: the load must not be what limits.
      const onDone = (received: number) => {
        endedAt = performance.now();
        bytes += received;
        if (current?.counts === true) {
          latencies[requests % keptLatencies] = endedAt - sentAt;
          waited += endedAt - sentAt;
          requests++;
        }
        sendNext();
      };
      const sendNext = () => {
        current = lane.next();
        if (current === undefined) return resolve();
        sentAt = performance.now();
        sender.send(current, onDone);
      };
      sendNext();
    });

  const senders = lanes.map((_, at) => senderOf(at));
  const all = Promise.all(lanes.map((lane, at) => run(lane, senders[at] as Sender<Request>)));
  await Promise.race([all, ...new Set(senders.map(({ failed }) => failed))]);
  const sorted = latencies.subarray(0, Math.min(requests, keptLatencies)).sort();
  return {
    requests,
    elapsedSeconds: (endedAt - startedAt) / 1000,
    waitedSeconds: waited / 1000,
    p50Micros: requests === 0 ? 0 : quantile(sorted, 0.5) * 1000,
    p99Micros: requests === 0 ? 0 : quantile(sorted, 0.99) * 1000,
    bytes,
  };
}

/** Repeats `requests`, once at least, until the time is over, and never leaves off in the middle. */
export function repeating<Request>(requests: readonly Request[], seconds: number): Lane<Request> {
  const until = performance.now() + seconds * 1000;
  let at = 0;
  return {
    next() {
      if (at === requests.length) {
        if (performance.now() >= until) return undefined;
        at = 0;
      }
      return requests[at++];
    },
  };
}
