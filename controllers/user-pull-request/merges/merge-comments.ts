import type { Forge } from '../../../src/forge/forge.ts';
import { pauseAfter } from '../../../src/forge/pause-after.ts';
import { LruCache } from '../../../src/foundation/lru-cache.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { digest } from '../../../src/foundation/text/canonical-json.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';

/** Merged pull requests whose comment is remembered, and comments that wait for the host. */
const MAX_COMMENTS = 100;
/** Between two attempts after a failure. */
const RETRY_MS = 10_000;

export interface CommentFailure {
  readonly error: unknown;
}

/**
 * The comments about merges, of which each is settled before its comment is written: a host that takes none, as one that limits new content, holds up no
 * publication.
 */
export class MergeComments {
  /** The last one about each, whether the host has it or not. */
  readonly #last = new LruCache<number, string>({ maxEntries: MAX_COMMENTS });
  readonly #waiting = new Map<number, string>();
  #missed: readonly [number: number, text: string] | undefined;
  #failure: (CommentFailure & { readonly untilMs: number }) | undefined;

  /** Whether this is the last one about it. A comment changes a pull request, so that it is looked at once more. */
  has(number: number, text: string): boolean {
    return this.#last.get(number) === text;
  }

  add(number: number, text: string): void {
    this.#last.set(number, text);
    this.#waiting.delete(number);
    this.#waiting.set(number, text);
    for (const [oldest] of this.#waiting) if (this.#waiting.size > MAX_COMMENTS) this.#waiting.delete(oldest);
  }

  /** One that an earlier process may have written. It wrote each before the next publication, so that the last one alone can be missing. */
  addMissed(number: number, text: string): void {
    this.#missed = [number, text];
  }

  /** No other missed one follows. */
  endMissed(): void {
    if (this.#missed !== undefined) this.add(...this.#missed);
    this.#missed = undefined;
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Returns the failure if the host takes none for now, which is not requested again at once. */
  async write({
    forge,
    repository,
    clock,
    signal,
  }: {
    readonly forge: Pick<Forge, 'setComment'>;
    readonly repository: Pick<PackageRepository, 'id' | 'layout'>;
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly signal: AbortSignal;
  }): Promise<CommentFailure | undefined> {
    for (const [number, text] of [...this.#waiting]) {
      if (this.#failure !== undefined && clock.monotonic() < this.#failure.untilMs) return this.#failure;
      try {
        await forge.setComment(number, topicOf(repository), text, signal);
      } catch (error) {
        if (!isSluiceError(error) || !UNWRITABLE.has(error.code)) {
          this.#failure = { error, untilMs: clock.monotonic() + (pauseAfter(error) ?? RETRY_MS) };
          // The next attempt begins with another one: this one alone may fail.
          this.add(number, text);
          return this.#failure;
        }
      }
      this.#waiting.delete(number);
    }
    return undefined;
  }
}

/** Each Repository of a branch publishes its packages at its own time, and reports these. */
function topicOf({ id, layout: { directory } }: Pick<PackageRepository, 'id' | 'layout'>): string {
  return directory === '' ? 'merged' : `merged-${digest(id).replace(/^.*:/, '').slice(0, 12)}`;
}

/** A locked conversation, or one that a user has deleted. */
const UNWRITABLE: ReadonlySet<string> = new Set(['Refused', 'NotFound', 'InvalidInput']);
