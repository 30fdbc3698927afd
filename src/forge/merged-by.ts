import { LruCache } from '../foundation/lru-cache.ts';
import type { PullRequest } from './forge.ts';

const MAX_ENTRIES = 1000;

/**
 * Who merged pull requests, which hosts return for one of them but not in lists. A merge is final, so that it can be kept; without it a list
 * would seem to be a change after each `get`.
 */
export class MergedBy {
  readonly #known = new LruCache<number, string>({ maxEntries: MAX_ENTRIES });

  /** Returns the pull request with the login, if it was ever returned. */
  complete(pull: PullRequest): PullRequest {
    if (pull.merged === undefined) return pull;
    const { by } = pull.merged;
    if (by !== undefined) this.#known.set(pull.number, by);
    return { ...pull, merged: { ...pull.merged, by: by ?? this.#known.get(pull.number) } };
  }
}
