import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import { REOPEN_MS } from '../ending/end-step.ts';
import { proposeAgain, type ReopenContext, rejectedBy } from '../ending/propose-again.ts';
import type { PullRequests } from '../pull-requests.ts';
import { membersAt } from './batch-branch.ts';

/** True for a pull request that a user has closed lately, while a package of it is as it was then, and would be proposed by opening it again. */
export async function mayReopen(
  { store, clock }: Pick<ReopenContext, 'store'> & { readonly clock: Clock },
  repository: PackageRepository,
  pull: PullRequest,
): Promise<boolean> {
  if (pull.state !== 'closed' || pull.closedAt === undefined) return false;
  if (clock.now() - Date.parse(pull.closedAt) > REOPEN_MS) return false;
  return (await rejectedBy(store, repository, pull, await namesAt(repository, pull.head.commit))).length > 0;
}

/** Proposes again what the end of a shared pull request has rejected, if a user has opened it again. */
export function reopenBatch(
  context: ReopenContext,
  pulls: PullRequests,
  repository: PackageRepository,
  pull: PullRequest,
): Promise<void> {
  return proposeAgain(context, pulls, repository, pull, (head) => namesAt(repository, head));
}

async function namesAt({ git }: PackageRepository, head: string): Promise<readonly string[]> {
  return ((await membersAt(git, head)) ?? []).map(({ name }) => name);
}
