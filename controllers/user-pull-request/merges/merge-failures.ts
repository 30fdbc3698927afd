import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { MAX_HELD_MS, type MergedUserPull } from './merged-user-pull.ts';
import { type ReportContext, reportFailing } from './report-user-merge.ts';

/** So much of the time between two attempts that failed counts at most. */
const MAX_FAILING_MS = 120_000;

/** True for one that was passed over, until it is tried again. It is tried before each later one too, so that their order is kept where it can be. */
export function restsAfterFailure({ failing }: MergedUserPull, nowMs: number): boolean {
  return isOvertaken(failing) && nowMs - failing.lastMs < MAX_HELD_MS;
}

/** The merges that have failed in one look at all of them, `ordered`. */
export class MergeFailures {
  readonly #context: ReportContext;
  readonly #ordered: readonly MergedUserPull[];
  readonly #unavailable: MergedUserPull[] = [];

  constructor(context: ReportContext, ordered: readonly MergedUserPull[]) {
    this.#context = context;
    this.#ordered = ordered;
  }

  /** Rejects with the error of the merge at this place, unless it has failed for so long, while its host could be read, that later ones pass it. */
  async passOver(place: number, error: unknown): Promise<void> {
    const [merged, ...later] = this.#ordered.slice(place);
    if (merged === undefined) throw error;
    const { forMs } = await noteFailure(this.#context, merged, later);
    const isUnavailable = isSluiceError(error, 'Unavailable');
    if (isUnavailable && this.#unavailable.length > 0) {
      // What fails concerns all, as a full disk does: none must lose its place when that ends.
      for (const one of [...this.#unavailable, merged]) delete one.failing;
      for (const one of this.#ordered) delete one.heldMs;
      throw error;
    }
    // A single failure may be one of the moment.
    const isLong = forMs > 0 && (later[0]?.heldMs ?? 0) >= MAX_HELD_MS;
    if (!isLong && !isOvertaken(merged.failing)) throw error;
    if (isUnavailable) this.#unavailable.push(merged);
    reportFailing(this.#context, merged, error);
  }
}

/** Rejects if the host cannot be read: what concerns all merges has to end before one of them is passed over. */
async function noteFailure(
  { forge, clock, signal }: ReportContext,
  merged: MergedUserPull,
  later: readonly MergedUserPull[],
): Promise<NonNullable<MergedUserPull['failing']>> {
  await forge.listUpdated('1970-01-01T00:00:00Z', 1, signal);
  const lastMs = clock.monotonic();
  const { failing: before = { forMs: 0, lastMs } } = merged;
  // Without an attempt for longer, it may not have failed all the time.
  const addedMs = Math.min(lastMs - before.lastMs, MAX_FAILING_MS);
  merged.failing = { forMs: before.forMs + addedMs, lastMs };
  // Only the time of one that holds up others: several that fail must take no longer than one.
  if (!isOvertaken(before)) for (const one of later) one.heldMs = (one.heldMs ?? 0) + addedMs;
  return merged.failing;
}

function isOvertaken(failing: MergedUserPull['failing']): failing is NonNullable<MergedUserPull['failing']> {
  return failing !== undefined && failing.forMs >= MAX_HELD_MS;
}
