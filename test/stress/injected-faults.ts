import type { SeededRandom } from "../kill/seeded-random.js";

/**
 * What a driver does wrong: so many calls of a function in a hundred, with one of these results, none of them sticky.
 * The size of what was opened is always told: were it not, and the close refused that follows, the memory would stay
 * mapped until its context goes, and be no region's.
 */
const faults = [
  ["cuIpcOpenMemHandle_v2", 4, [1, 2, 201, 400]],
  ["cuIpcCloseMemHandle", 3, [1, 201]],
  ["cuMemcpyDtoH_v2", 2, [1, 2]],
  ["cuMemcpyHtoD_v2", 2, [1]],
  ["cuDevicePrimaryCtxRetain", 1, [2]],
] as const;

/** How often a call is slow, in a hundred, and by how many milliseconds at most. */
const delays = [
  ["cuIpcOpenMemHandle_v2", 8, 60],
  ["cuIpcCloseMemHandle", 4, 40],
  ["cuMemcpyDtoH_v2", 4, 30],
] as const;

/** The system takes no longer variable. */
const longestText = 120_000;

/** Variables that have the emulated driver fail and be slow at some of its first `calls` calls of each function. */
export function injectedFaults(random: SeededRandom, calls: number): Readonly<Record<string, string>> {
  const forced: string[] = [];
  const slow: string[] = [];
  // The first few are how a test finds the service's state of rest.
  for (let call = 10; call < calls; call++) {
    for (const [name, percent, results] of faults) {
      if (random.percent(percent)) forced.push(`${name}@${call}=${random.pick(results)}`);
    }
    for (const [name, percent, longestMs] of delays) {
      if (random.percent(percent)) slow.push(`${name}@${call}=${1 + random.below(longestMs)}`);
    }
  }
  return {
    CUDASHM_EMULATED_FAULTS: listOf(forced),
    CUDASHM_EMULATED_DELAYS: listOf(slow),
  };
}

function listOf(items: readonly string[]): string {
  const text = items.join(",");
  return text.length <= longestText ? text : text.slice(0, text.lastIndexOf(",", longestText));
}
