import { isSluiceError } from '../../foundation/sluice-error.ts';
import { isUnknownOutcome, PushRefusedError, RefConflictError } from '../../git/errors.ts';
import type { Planned } from './gather-batch.ts';

/** The treatment of the writes of a batch that was not committed. */
export interface SplitBatch<Write> {
  /** They fail with the error of the batch. */
  readonly failed: readonly Write[];
  /** They are sent again, each group separately. */
  readonly again: readonly (readonly Write[])[];
  /** They were overtaken on the main branch, and are in one of the groups. */
  readonly overtaken: readonly Write[];
  /** Another writer changed refs, which have to be read before the next write. */
  readonly changed: boolean;
}

/**
 * Finds the writes that caused a refusal. If the error names a ref, the write that changes it fails; writes that lost a race for the
 * main branch are planned again; if a rule refuses the batch without naming a ref, both halves are tried, so that the number of
 * requests grows with the logarithm of the batch size. Connection errors apply to all writes.
 */
export function splitRefusedBatch<Write>(
  error: unknown,
  planned: readonly Planned<Write>[],
  main: string,
): SplitBatch<Write> {
  const writes = planned.map(({ write }) => write);
  if (affectsAll(error)) return { failed: writes, again: [], overtaken: [], changed: false };
  const kind = error instanceof RefConflictError ? error.details?.kind : undefined;
  const { ref } =
    (error instanceof RefConflictError || error instanceof PushRefusedError ? error.details : undefined) ?? {};
  const changed = kind !== undefined;
  const owners =
    ref === undefined ? [] : planned.filter(({ plan }) => plan.updates.some((update) => update.ref === ref));
  const owning = owners.map(({ write }) => write);
  const others = writes.filter((write) => !owning.includes(write));
  if (ref === main && (kind === 'moved' || kind === 'locked'))
    return { failed: [], again: groups(others, owning), overtaken: owning, changed };
  if (owning.length === 1) return { failed: owning, again: groups(others), overtaken: [], changed };
  const suspects = owning.length === 0 ? writes : owning;
  if (suspects.length === 1) return { failed: suspects, again: [], overtaken: [], changed };
  const half = Math.ceil(suspects.length / 2);
  const rest = owning.length === 0 ? [] : others;
  return {
    failed: [],
    again: groups(rest, suspects.slice(0, half), suspects.slice(half)),
    overtaken: [],
    changed,
  };
}

/** True for errors that no write of a batch can be blamed for. */
function affectsAll(error: unknown): boolean {
  if (isUnknownOutcome(error)) return true;
  return (['Unavailable', 'Timeout', 'Refused', 'Unsupported', 'TooManyRequests'] as const).some((code) =>
    isSluiceError(error, code),
  );
}

function groups<Write>(...candidates: readonly (readonly Write[])[]): (readonly Write[])[] {
  return candidates.filter((group) => group.length > 0);
}
