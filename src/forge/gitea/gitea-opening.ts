import { setTimeout as delay } from 'node:timers/promises';
import { SharedCall } from '../../foundation/concurrency/shared-call.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Forge, NewPullRequest, PullRequest } from '../forge.ts';
import type { GiteaLabels } from './gitea-labels.ts';
import { isFor } from './gitea-pull.ts';

/** Requests at the same time end within this. */
const RACE_MS = 60_000;
/** Until others that are being opened are waited for no longer. */
const MAX_OPENING_MS = 5000;

/** The requests that opening pull requests of a repository takes. */
export interface OpeningRequests extends Pick<Forge, 'get' | 'listOpen' | 'update'> {
  create(
    wanted: Omit<NewPullRequest, 'labels'> & { readonly labels?: readonly number[] },
    signal: AbortSignal,
  ): Promise<PullRequest>;
  /** The open ones that changed at this time, in milliseconds since the epoch, or later. */
  listOpenSince(since: number): Promise<readonly PullRequest[]>;
}

/** Opens the pull requests of a repository on Gitea, one for each branch. */
export class GiteaOpening {
  readonly #requests: OpeningRequests;
  readonly #labels: GiteaLabels;
  /** Those that are being opened. */
  readonly #opening = new Set<Promise<PullRequest>>();
  /** Those that were opened and for which the next list of the others is read. */
  #opened: PullRequest[] = [];
  /** Open pull requests that changed last, as that list has them. */
  #recent: readonly PullRequest[] = [];
  readonly #readRecent = new SharedCall(() => this.#listRecent());

  constructor(requests: OpeningRequests, labels: GiteaLabels) {
    this.#requests = requests;
    this.#labels = labels;
  }

  async open({ labels = [], ...wanted }: NewPullRequest, signal: AbortSignal): Promise<PullRequest> {
    try {
      const ids = labels.length === 0 ? {} : { labels: await this.#labels.idsOf(labels, signal) };
      const opening = this.#requests.create({ ...wanted, ...ids }, signal);
      this.#opening.add(opening);
      const opened = await opening.finally(() => this.#opening.delete(opening));
      const pull = await this.#onlyOne(opened, signal);
      // A label was deleted, and possibly created again.
      if (labels.some((name) => !pull.labels.includes(name))) {
        this.#labels.forget();
        if (pull.number === opened.number) await this.#labels.add(pull.number, pull.labels, labels, signal);
      }
      return pull;
    } catch (error) {
      if (!isSluiceError(error, 'Conflict')) throw error;
      const open = await this.#requests.listOpen(wanted.base, Number.POSITIVE_INFINITY, signal);
      const [found, ...others] = open.filter(isFor(wanted.head, wanted.base));
      if (found === undefined) throw error;
      // Several, if a process ended before it had looked for others.
      return this.#keepFirst([found, ...others], signal);
    }
  }

  /**
   * Gitea opens one for each of several requests at the same time. Another process may have opened one a moment ago, which is then among those
   * that changed last. All that are opened at the same time share one list, which is read after each of them was opened: Gitea opens one after
   * the other.
   */
  async #onlyOne(opened: PullRequest, signal: AbortSignal): Promise<PullRequest> {
    const others = Promise.allSettled(this.#opening);
    await Promise.race([others, delay(MAX_OPENING_MS, undefined, { ref: false, signal })]);
    // After the wait: a list that others read during it would take this one, and the next list would not go back far enough.
    this.#opened.push(opened);
    await this.#readRecent.call();
    const isSame = isFor(opened.head.branch, opened.base.branch);
    const found = this.#recent.filter((pull) => isSame(pull) && pull.number !== opened.number);
    return this.#keepFirst([opened, ...found], signal);
  }

  /**
   * Returns the one with the lowest number, which stays, and closes the others: what opened them may have ended. Without their text, so that
   * this is no decision about them.
   */
  async #keepFirst(
    pulls: readonly [PullRequest, ...(readonly PullRequest[])],
    signal: AbortSignal,
  ): Promise<PullRequest> {
    const first = pulls.reduce((one, other) => (other.number < one.number ? other : one));
    const body = `Another process has opened #${first.number} for the same branch.`;
    for (const { number } of pulls) {
      if (number !== first.number) await this.#close(number, body, signal);
    }
    return first;
  }

  /** Of two processes that close one at the same time Gitea returns the status 500 to the later one. */
  async #close(number: number, body: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#requests.update(number, { state: 'closed', body }, signal);
    } catch (error) {
      if (!isSluiceError(error, 'Unavailable')) throw error;
      const { state } = await this.#requests.get(number, signal);
      if (state === 'open') throw error;
    }
  }

  async #listRecent(): Promise<void> {
    const opened = this.#opened.splice(0);
    const since = Math.min(...opened.map(({ updatedAt }) => Date.parse(updatedAt))) - RACE_MS;
    this.#recent = await this.#requests.listOpenSince(since);
  }
}
