/** Calls `work` on each item, in order, with at most `limit` unfinished at a time. `work` must not reject. */
export async function forEachBounded<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  async function lane(): Promise<void> {
    for (const item of queue) await work(item);
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
}
