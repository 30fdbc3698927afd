import type { Forge } from '../../../src/forge/forge.ts';
import { isSluiceError, SluiceError } from '../../../src/foundation/sluice-error.ts';
import { MAX_HELD_MS, type MergedUserPull } from './merged-user-pull.ts';

/** So much of the time between two attempts that failed counts at most: without an attempt for longer, it may not have failed all the time. */
const MAX_GAP_MS = 120_000;
/** For so long each one has to fail itself before later ones pass it: a failure may be one of the moment. */
const MIN_FAILING_MS = 60_000;
/** Failures that can concern all merges: a full disk, a Git server that hangs, a limit of requests, a signing key that does not count. */
const OF_ALL: ReadonlySet<string> = new Set(['Unavailable', 'Timeout', 'TooManyRequests', 'Refused']);

export type Standing = Pick<MergedUserPull, 'failing'>;

/** Whether later ones pass it, until an attempt does not fail. */
export function isPassedOver({ failing }: Standing): boolean {
  return failing !== undefined && failing.heldMs >= MAX_HELD_MS;
}

/** True for one that was passed over, until it is tried again. It is tried before each later one too, so that their order is kept where it can be. */
export function restsAfterFailure(one: Standing, nowMs: number): boolean {
  return isPassedOver(one) && nowMs - (one.failing?.lastMs ?? nowMs) < MAX_HELD_MS;
}

/** The failures in one look at all merges that wait. */
export class MergeFailures<Merge extends Standing> {
  /** With the errors. */
  readonly #passed = new Map<Merge, unknown>();

  /**
   * Notes in these merges, in their order, that an attempt of one has failed. Returns whether the next one is tried: this one has failed for long, and
   * what fails does not concern all.
   */
  note(
    ordered: readonly Merge[],
    merged: Merge,
    { error, nowMs }: { readonly error: unknown; readonly nowMs: number },
  ): boolean {
    if (isOfAll(error) && [...this.#passed.values()].some(isOfAll)) {
      // None must lose its place when that ends.
      for (const one of ordered)
        if (one === merged || isOfAll(this.#passed.get(one)) || !isPassedOver(one)) delete one.failing;
      for (const [one] of this.#passed) if (!isPassedOver(one)) this.#passed.delete(one);
      return false;
    }
    const { heldMs = 0, lastMs = nowMs } = merged.failing ?? {};
    const addedMs = Math.min(nowMs - lastMs, MAX_GAP_MS);
    const holdsUp = !isPassedOver(merged);
    merged.failing = { heldMs: heldMs + addedMs, lastMs: nowMs };
    // Several that fail must take little longer than one.
    const later = holdsUp ? ordered.slice(ordered.indexOf(merged) + 1) : [];
    for (const one of later) {
      const before = one.failing?.heldMs ?? 0;
      const most = Math.max(before, MAX_HELD_MS - MIN_FAILING_MS);
      one.failing = { ...one.failing, heldMs: Math.min(before + addedMs, most) };
    }
    if (!isPassedOver(merged)) return false;
    this.#passed.set(merged, error);
    return true;
  }

  /** Those that were passed over since the last call, which is to follow once a later one is published, or none is left. */
  takePassed(): readonly (readonly [Merge, unknown])[] {
    const passed = [...this.#passed];
    this.#passed.clear();
    return passed;
  }
}

function isOfAll(error: unknown): boolean {
  return isSluiceError(error) && OF_ALL.has(error.code);
}

/** Rejects if the host cannot be read: what concerns all merges has to end before one of them is passed over. */
export async function expectReadable(forge: Pick<Forge, 'listUpdated'>, cause: unknown, signal: AbortSignal) {
  try {
    await forge.listUpdated('1970-01-01T00:00:00Z', 1, signal);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    throw new SluiceError(error.code, error.message, { cause, details: error.details });
  }
}
