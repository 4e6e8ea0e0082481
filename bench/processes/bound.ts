/** The command line that runs another one on `core` alone; null leaves it to the scheduler. */
export function bound(
  core: number | null,
  command: readonly [string, ...string[]],
): readonly [string, ...string[]] {
  return core === null ? command : ["taskset", "--cpu-list", String(core), ...command];
}
