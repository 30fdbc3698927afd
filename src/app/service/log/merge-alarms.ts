import type { Clock } from '../../../foundation/time/clock.ts';
import type { IndexChange } from '../../../package/index/state/index-delta.ts';
import { type PackageRevision, revisionId } from '../../../package/model/revision/package-revision.ts';
import { changedOnMain } from './narrate-changes.ts';

/** Milliseconds for which a merge has to be published: hosts are read every ten to thirty seconds. */
const HOLD_MS = 60_000;

export interface MergeAlarmsOptions {
  readonly clock: Pick<Clock, 'schedule'>;
  find(id: string): PackageRevision | undefined;
  /** True for a package on the main branch that is published in a moment if a merge brought it there. */
  isAwaited(onMain: PackageRevision): boolean;
  /** Called with what was held and stays. */
  onStaying(change: IndexChange): void;
}

/**
 * Holds the alarms about packages on the main branch that a merge has brought there: the host merges a moment before Sluice reads that and
 * publishes it. What stays is said after a minute, or as soon as no merge can publish it any more.
 */
export class MergeAlarms {
  readonly #options: MergeAlarmsOptions;
  readonly #held = new Map<string, { readonly before: PackageRevision | undefined; readonly cancel: () => void }>();

  constructor(options: MergeAlarmsOptions) {
    this.#options = options;
  }

  /** Returns the changes that are to be said now. */
  sift(changes: readonly IndexChange[]): readonly IndexChange[] {
    const news = changes.filter((change) => !this.#hold(change));
    for (const id of [...this.#held.keys()]) {
      const now = this.#options.find(id);
      if (now?.outOfBand === undefined || !this.#options.isAwaited(now)) this.#end(id);
    }
    return news;
  }

  /** Nothing will publish what is held. */
  end(): void {
    for (const id of [...this.#held.keys()]) this.#end(id);
  }

  #hold(change: IndexChange): boolean {
    const { before, after } = change;
    if (after === undefined || !changedOnMain(change) || !this.#options.isAwaited(after)) return false;
    const id = revisionId(after);
    if (!this.#held.has(id))
      this.#held.set(id, { before, cancel: this.#options.clock.schedule(HOLD_MS, () => this.#end(id)) });
    return true;
  }

  #end(id: string): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    held.cancel();
    this.#held.delete(id);
    const after = this.#options.find(id);
    if (after?.outOfBand !== undefined) this.#options.onStaying({ before: held.before, after });
  }
}
