// Loaded into every server before its own code: answers what only the process itself can tell.
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { answerQuestions } from "../processes/answer-questions.js";

/** In bytes, after collecting garbage. */
export interface MemoryFigures {
  /** What JavaScript's heap holds, without what it has in reserve. */
  readonly heap: number;
  /** What is resident and no heap of JavaScript's: buffers, and all that C++ holds. */
  readonly native: number;
  /** All that is resident, the heap's reserve included. */
  readonly resident: number;
}

const loopResolutionMs = 1;
let loop: IntervalHistogram | null = null;

answerQuestions({
  async memory(): Promise<MemoryFigures> {
    // What the first collection lets finalizers free, the next one finds.
    for (let times = 0; times < 3; times++) {
      globalThis.gc?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { heapUsed, heapTotal, rss } = process.memoryUsage();
    return { heap: heapUsed, native: rss - heapTotal, resident: rss };
  },

  watchLoop(): void {
    loop?.disable();
    loop = monitorEventLoopDelay({ resolution: loopResolutionMs });
    loop.enable();
  },

  loopDelays(): Readonly<Record<string, number>> {
    if (loop === null) return {};
    loop.disable();
    // The histogram has the time between two looks, and one resolution of it is how far they are apart.
    const delay = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - loopResolutionMs);
    return { "loop max ms": delay(loop.max), "loop p99 ms": delay(loop.percentile(99)) };
  },

  memcpy({ bytes, seconds }: { bytes: number; seconds: number }): number {
    const [from, to] = [Buffer.alloc(bytes, 1), Buffer.alloc(bytes)];
    const startedAt = performance.now();
    let copies = 0;
    let elapsed = 0;
    do {
      from.copy(to);
      copies++;
      elapsed = performance.now() - startedAt;
    } while (elapsed < seconds * 1000);
    return (copies * bytes) / 2 ** 20 / (elapsed / 1000);
  },
});

// A server ends when it likes, not when the runner has no more questions.
process.channel?.unref();
