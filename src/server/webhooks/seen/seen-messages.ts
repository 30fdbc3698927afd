import type { Clock } from '../../../foundation/time/clock.ts';
import type { SeenFile } from './seen-file.ts';

export interface SeenMessagesOptions {
  readonly clock: Clock;
  readonly milliseconds: number;
  readonly limit: number;
  /** Default: a restart forgets them. */
  readonly file?: SeenFile | undefined;
}

/** Remembers messages for a while, and at most so many of them: beyond that the oldest is forgotten. */
export class SeenMessages {
  readonly #options: SeenMessagesOptions;
  /** In the order of arrival. */
  #seen: Map<string, number> | undefined;

  constructor(options: SeenMessagesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#seen?.size ?? 0;
  }

  /** True if it is not remembered; from now on it is. */
  add(id: string): boolean {
    const { clock, milliseconds, limit, file } = this.#options;
    // With the first message: most installations have no webhooks.
    this.#seen ??= new Map(file?.load().map(({ id: old, at }) => [old, at]));
    const seen = this.#seen;
    const now = clock.now();
    const removed: string[] = [];
    for (const [old, at] of seen) {
      // After the clock was set back, what was seen later than now is forgotten too.
      if (now >= at && now - at < milliseconds && seen.size < limit) break;
      seen.delete(old);
      removed.push(old);
    }
    const isNew = !seen.has(id);
    if (isNew) seen.set(id, now);
    if (isNew || removed.length > 0) file?.replace(removed, isNew ? { id, at: now } : undefined);
    return isNew;
  }
}
