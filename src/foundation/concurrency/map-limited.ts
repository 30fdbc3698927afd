/**
 * Calls `action` for each item, at most `limit` at a time, and returns the results in order. Without a limit, thousands of files
 * would be open at once. When one fails, no more are started, and the first error is thrown once the running ones have ended.
 * For calls that come one by one from different callers, use `Limiter`.
 */
export async function mapLimited<Item, Result>(
  items: readonly Item[],
  limit: number,
  action: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  let failed = false;
  const work = async () => {
    for (const [index, item] of queue) {
      if (failed) return;
      try {
        results[index] = await action(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, work));
  const failure = workers.find((worker) => worker.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
  return results;
}
