import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { PullRequest } from '../forge.ts';
import { MAX_ENDED } from '../forge-merging.ts';
import { isFor } from './gitea-pull.ts';

/** Ended pull requests among which one is looked for that shows whether `anyOf` works. */
const MAX_PROBED = 50;

/** The requests that searching a repository takes. */
export interface SearchRequests {
  /** Any pull request between these branches of the repository, in any state. Rejects as `Forge.get` does. */
  anyOf(head: string, base: string, signal: AbortSignal): Promise<PullRequest>;
  /** The first wanted one of those to a branch, the one that was opened last first. */
  first(
    where: { readonly state: 'open' | 'closed'; readonly base: string },
    sort: (pull: PullRequest) => 'wanted' | 'other' | 'last',
    signal: AbortSignal,
  ): Promise<PullRequest | undefined>;
}

/**
 * Finds the pull request of a branch on Gitea, which has no list of those of one. It returns any of them by its branches, mostly the first one: that there
 * is none, or that this one is open, needs no further list. Otherwise the list of those that have ended is read as far as the one that was opened last.
 */
export class GiteaSearch {
  readonly #requests: SearchRequests;
  /** Branches to which one was found by its branches. */
  readonly #works = new Set<string>();

  constructor(requests: SearchRequests) {
    this.#requests = requests;
  }

  async find(head: string, base: string, signal: AbortSignal): Promise<PullRequest | undefined> {
    const isWanted = isFor(head, base);
    const any = await this.#anyOf(head, base, signal);
    const own = typeof any === 'object' && isWanted(any) ? any : undefined;
    if (own?.state === 'open') return own;
    // Also where there is none: a repository that cannot be read has none either, and this rejects.
    const sort = (pull: PullRequest) => (isWanted(pull) ? 'wanted' : 'other');
    const open = await this.#requests.first({ state: 'open', base }, sort, signal);
    if (open !== undefined) return open;
    if (any === 'none' && (await this.#isReliable(base, signal))) return undefined;
    const ended = { state: 'closed', base } as const;
    return (await this.#requests.first(ended, upTo(MAX_ENDED, isWanted), signal)) ?? own;
  }

  async #anyOf(head: string, base: string, signal: AbortSignal): Promise<PullRequest | 'none' | 'unread'> {
    try {
      const found = await this.#requests.anyOf(head, base, signal);
      if (isFor(head, base)(found)) this.#works.add(base);
      return found;
    } catch (error) {
      if (isSluiceError(error, 'NotFound')) return 'none';
      if (isSluiceError(error, 'LimitExceeded')) return 'unread';
      throw error;
    }
  }

  /** Whether `anyOf` finds those to this branch: hosts before Gitea 1.22 do not have it, and proxies can change names in addresses. */
  async #isReliable(base: string, signal: AbortSignal): Promise<boolean> {
    if (this.#works.has(base)) return true;
    const isKnown = (pull: PullRequest) => isFor(pull.head.branch, base)(pull);
    const known = await this.#requests.first({ state: 'closed', base }, upTo(MAX_PROBED, isKnown), signal);
    if (known !== undefined) await this.#anyOf(known.head.branch, base, signal);
    return this.#works.has(base);
  }
}

/** Selects among so many. */
function upTo(limit: number, isWanted: (pull: PullRequest) => boolean): Parameters<SearchRequests['first']>[1] {
  let read = 0;
  return (pull) => {
    read += 1;
    if (read > limit) return 'last';
    return isWanted(pull) ? 'wanted' : 'other';
  };
}
