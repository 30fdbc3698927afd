import type { PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { proposerOf } from '../../../src/package/kernel/revision-state.ts';
import { PUSH_ACTOR } from '../../../src/package/model/gates/verdict.ts';
import { REVIEW_ACTOR } from '../../../src/package/model/policy/review-policy.ts';
import { rejectionOf } from '../../../src/package/model/record/record.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { PullRequests } from '../pull-requests.ts';
import { contentAt } from '../reviews/same-content.ts';
import { proposalId, proposalsIn, withSection } from '../text/section.ts';
import { isClosedReason } from './apply-end.ts';

const REOPENED = 'It was opened again, so that what is as it was then is proposed again.';

export interface ReopenContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find'>;
  readonly events: EventDeduplicator;
  readonly signal: AbortSignal;
}

interface RestoredProposal {
  readonly object: Stored<PackageRevision>;
  readonly evaluation: RevisionEvaluation;
  /** Those of its repository. */
  readonly pulls: PullRequests;
}

/** A draft that was rejected by the end of a pull request, and the user who had proposed it. */
interface Rejected {
  readonly revision: Revision;
  readonly proposer: string;
}

/**
 * Proposes again what the end of a pull request has rejected, if a user has opened it again and its head has what is in the draft. The proposer
 * stays the one of before, who must not approve it then either. `namesAt` returns the revisions that a head is for.
 */
export async function proposeAgain(
  { client, store, events, signal }: ReopenContext,
  pulls: PullRequests,
  repository: PackageRepository,
  pull: PullRequest,
  namesAt: (head: string) => Promise<readonly string[]>,
): Promise<void> {
  const rejectedIn = async (one: PullRequest) => rejectedBy(store, repository, one, await namesAt(one.head.commit));
  if ((await rejectedIn(pull)).length === 0) return;
  // What a user decided is read again before it has an effect.
  const now = await pulls.forge.get(pull.number, signal);
  pulls.note(now);
  const rejected = now.state === 'open' ? await rejectedIn(now) : [];
  if (rejected.length === 0) return;
  const proposals: string[] = [];
  const reason = `${pull.url} was opened again`;
  for (const { revision, proposer } of rejected) {
    const { namespace, name } = revision;
    const object = await client.find(packageRevisionKind, { namespace, name }, { signal });
    if (object?.spec.lifecycle !== 'Draft') continue;
    const proposed = { ...object, spec: { ...object.spec, lifecycle: 'Proposed' as const } };
    try {
      const as = client.as({ name: proposer }, 'controller');
      const after = await as.update(packageRevisionKind, proposed, { reason, signal });
      const message = `${reason}, so that it is proposed again; approvals from before do not count`;
      events.record(after, 'Normal', 'PullRequestReopened', message, 'opened');
    } catch (error) {
      // One that may not be proposed any more must not hold up the others.
      if (!isSluiceError(error) || ['Conflict', 'Busy'].includes(error.code)) throw error;
      events.record(object, 'Warning', 'NotProposed', `${reason}, but: ${messageOf(error)}`, 'opened');
      continue;
    }
    const { uid, record } = store.find(keyText({ namespace, name })) ?? revision;
    proposals.push(proposalId(uid, record?.steps ?? []));
  }
  if (proposals.length > 0) await markAs(pulls, now, proposals, signal);
}

/**
 * The same for a proposal whose branch was restored, so that it is there already: an open pull request shows that it is to be reviewed again. Returns
 * whether it was recorded. What is refused is reported, and stays as it is. Other content than was rejected is the proposal of an unknown user, who
 * pushed it.
 */
export async function proposeRestored(
  context: Pick<ReopenContext, 'events' | 'signal'> & { readonly store: Pick<RevisionStore, 'find' | 'update'> },
  { object, evaluation, pulls }: RestoredProposal,
  pull: PullRequest,
): Promise<boolean> {
  const { store, events, signal } = context;
  const now = await pulls.forge.get(pull.number, signal);
  pulls.note(now);
  if (now.state !== 'open') return false;
  const name = keyText(keyOf(object));
  const { revision, record, content } = evaluation;
  const { steps } = record;
  const rejection = rejectionOf(record, { commit: revision.commit, content: content.content });
  const before = rejection === undefined ? [] : steps.slice(0, steps.lastIndexOf(rejection));
  const proposer = proposerOf({ steps: before }) ?? PUSH_ACTOR;
  const reason = `${pull.url} was opened again`;
  const update = { action: 'propose', expectedCommit: revision.commit } as const;
  try {
    await store.update(name, update, { actor: { name: proposer }, face: 'controller', reason, signal });
  } catch (error) {
    if (!isSluiceError(error, 'Refused')) throw error;
    events.record(object, 'Warning', 'NotProposed', `${reason}, but: ${messageOf(error)}`, 'opened');
    return false;
  }
  const message = `${reason}, so that it is proposed again; approvals from before do not count`;
  events.record(object, 'Normal', 'PullRequestReopened', message, 'opened');
  await markAs(pulls, now, [proposalId(revision.uid, store.find(name)?.record?.steps ?? [])], signal);
  return true;
}

/** Its end is the end of these proposals from now on. */
async function markAs(
  pulls: PullRequests,
  { number, body: before }: PullRequest,
  proposals: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const body = withSection(before, [...proposalsIn(before), ...proposals], REOPENED);
  try {
    pulls.note(await pulls.forge.update(number, { body }, signal));
  } catch (error) {
    // What a user has locked is left to its end: they get another pull request.
    if (!isPermanent(error)) throw error;
  }
}

/** Which of these revisions the end of a pull request has rejected, and are as its head has them. */
export async function rejectedBy(
  store: Pick<RevisionStore, 'find'>,
  repository: PackageRepository,
  pull: PullRequest,
  names: readonly string[],
): Promise<readonly Rejected[]> {
  const { git, namespace } = repository;
  const { commit: head } = pull.head;
  const rejected: Rejected[] = [];
  for (const name of names) {
    const revision = store.find(keyText({ namespace, name }));
    if (revision?.lifecycle !== 'Draft' || repository.policyFor(revision).review === undefined) continue;
    const proposer = proposerBefore(revision, pull);
    if (proposer === undefined) continue;
    const { path, commit } = revision;
    const [shown, now] = await Promise.all([head, commit].map((of) => contentAt(git, `${of}:${path}`)));
    if (shown !== undefined && shown === now) rejected.push({ revision, proposer });
  }
  return rejected;
}

/** The user who had proposed a revision until the end of this pull request rejected it; undefined if something else was the last step. */
function proposerBefore({ record }: Revision, { url }: PullRequest): string | undefined {
  const steps = record?.steps ?? [];
  const at = steps.findLastIndex(({ action }) => action !== 'push');
  const { action, by, reason } = steps[at] ?? {};
  if (action !== 'reject' || by !== REVIEW_ACTOR || !isClosedReason(reason, url)) return undefined;
  return proposerOf({ steps: steps.slice(0, at) }) ?? PUSH_ACTOR;
}
