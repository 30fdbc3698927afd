import type { z } from 'zod';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { ForgeErrorDetails, PullRequest } from '../forge.ts';
import type { BranchRules, MergeMethod, MergeObstacle, MergeOutcome, MergeRequest } from '../forge-merging.ts';
import type { branchSchema, manualMergesSchema, methodsSchema } from './gitea-schemas.ts';

/** Texts of Gitea's and Forgejo's refusals, in the order in which they are looked for. */
const OBSTACLES: readonly (readonly [RegExp, MergeObstacle])[] = [
  [/try again later|push out of date/i, 'unknown'],
  [/work in progress/i, 'draft'],
  [/merge style/i, 'method'],
  [/behind the base branch/i, 'behind'],
  [/PushRejected|not allowed|status check|approvals|review|protected|sign/i, 'blocked'],
];

/** Merges a pull request as the contract of `ForgeMerging` says. `send` sends the request, `get` reads the pull request. */
export async function mergePull(
  { send, get }: { readonly send: (body: object) => Promise<string>; readonly get: () => Promise<PullRequest> },
  { headCommit, method, title, message }: MergeRequest,
): Promise<MergeOutcome> {
  // Earlier versions and Forgejo know no other names of these fields.
  const text = method === 'rebase' ? {} : { MergeTitleField: title, MergeMessageField: message };
  let refusal: SluiceError | undefined;
  try {
    await send({ Do: method, head_commit_id: headCommit, ...text });
  } catch (error) {
    if (!isSluiceError(error) || !['Conflict', 'Refused', 'NotFound'].includes(error.code)) throw error;
    // The token has no right to it.
    if ((error.details as ForgeErrorDetails | undefined)?.status === 403) throw error;
    refusal = error;
  }
  const pull = await get();
  if (pull.state === 'merged' && pull.head.commit === headCommit)
    return { state: 'merged', commit: pull.merged?.commit || undefined };
  if (pull.head.commit !== headCommit)
    throw new SluiceError('Conflict', `${pull.url} has another head than ${headCommit}; read it again`);
  if (pull.state === 'closed') return { state: 'refused', obstacle: 'closed', message: 'it was closed' };
  if (refusal === undefined)
    return { state: 'refused', obstacle: 'unknown', message: 'the host has not merged it yet' };
  const found = OBSTACLES.find(([pattern]) => pattern.test(refusal.message))?.[1];
  const obstacle = found ?? (refusal.code === 'Conflict' ? conflictOrHead(refusal.message) : 'blocked');
  return { state: 'refused', obstacle, message: refusal.message };
}

/** A head that has moved was moved back meanwhile, if the pull request has the expected one. */
function conflictOrHead(message: string): MergeObstacle {
  return /head out of date/i.test(message) ? 'unknown' : 'conflict';
}

/** What protection of a branch requires only administrators can read. */
export function branchRulesOf(branch: z.infer<typeof branchSchema>): BranchRules {
  return branch.protected ? {} : { requiresUpToDate: false };
}

export function methodsOf(repository: z.infer<typeof methodsSchema>): readonly MergeMethod[] {
  const { allow_merge_commits: merge, allow_squash_merge: squash, allow_rebase: rebase } = repository;
  return [
    ...(merge ? ['merge' as const] : []),
    ...(squash ? ['squash' as const] : []),
    ...(rebase ? ['rebase' as const] : []),
  ];
}

/**
 * Why the user whom Gitea reports as who merged may not be the one. A merge that it detects, as the commits are in the branch, it ascribes to the last
 * user who pushed to the branch, which may be another one than pushed these commits. No response says which merges were detected or marked.
 */
export function unsureMergerOf(repository: z.infer<typeof manualMergesSchema>): string | undefined {
  const { autodetect_manual_merge: detects, allow_manual_merge: marks } = repository;
  const effect = 'with which it names the last user who pushed to the branch';
  if (detects === true) return `the host has the option autodetect_manual_merge for this repository, ${effect}`;
  if (typeof detects !== 'boolean')
    return `the host does not report whether the repository has the option autodetect_manual_merge, ${effect}`;
  if (marks === false) return undefined;
  return 'the host permits to mark a pull request as merged (allow_manual_merge) by any commit that the branch has';
}
