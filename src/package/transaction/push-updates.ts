import { type ErrorCode, isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { isUnknownOutcome } from '../../git/errors.ts';
import type { GitRemote, GitRepository, PushOutcome, RefUpdate } from '../../git/git-repository.ts';
import { parseRef, type RepositoryLayout } from '../model/identity/layout.ts';

/** A push whose response was lost, and which was not committed, is sent again this often. */
const MAX_RESENDS = 1;
/** Branches of revisions. Each write also makes a record, an approval or an end of a record, which is its alone. */
const STEP_BRANCHES: ReadonlySet<string> = new Set(['draft', 'proposed', 'deletionProposed']);

/** Pushes, and determines the outcome of a push whose response was lost. Throws an error with an unknown outcome if it cannot. */
export async function pushUpdates(
  git: GitRepository,
  remote: GitRemote,
  layout: RepositoryLayout,
  updates: readonly RefUpdate[],
): Promise<void> {
  let unknown: SluiceError | undefined;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await git.push(remote, updates);
    } catch (error) {
      // Once a response was lost, a refusal can also come from what the lost push did.
      if (isUnknownOutcome(error)) unknown ??= error;
      if (unknown === undefined) throw asFailureOfRemote(error);
    }
    const outcome = await outcomeOf(git, remote, layout, updates);
    if (outcome === 'done') return;
    // After one timeout, other writes do not wait for this again.
    if (outcome === undefined || unknown.code !== 'Unavailable' || attempt >= MAX_RESENDS) throw unknown;
  }
}

/** Undefined if the remote cannot be reached. */
async function outcomeOf(
  git: GitRepository,
  remote: GitRemote,
  layout: RepositoryLayout,
  updates: readonly RefUpdate[],
): Promise<PushOutcome | undefined> {
  // The branches of a lifecycle step refer to existing commits: the same step by another server uses the same ones.
  const own = updates.filter(({ ref }) => !STEP_BRANCHES.has(parseRef(layout, ref).kind));
  try {
    return await git.pushOutcome(remote, own.length === 0 ? updates : own);
  } catch (error) {
    // The caller reports that it is not known, with the reason why the push broke off.
    if (isSluiceError(error)) return undefined;
    throw error;
  }
}

/** What a Git host refuses this server is no refusal of the caller, whose package exists and whose credentials are valid. */
function asFailureOfRemote(error: unknown): unknown {
  const isOfServer = ['Unauthenticated', 'NotFound', 'Refused'].some((code) => isSluiceError(error, code as ErrorCode));
  if (!isOfServer || !isSluiceError(error)) return error;
  return new SluiceError('Unavailable', error.message, { cause: error, details: error.details });
}
