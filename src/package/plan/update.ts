import { SluiceError } from '../../foundation/sluice-error.ts';
import { traced } from '../../foundation/tracing/traced.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import { expectedValue, newValue } from '../../git/refs/ref-updates.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Approval } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { Action, MergedProposal } from '../model/revision/revision-state.ts';
import { planChange, type RevisionChange } from './edit/change.ts';
import type { RepositoryContext, WritePlan } from './ports/repository-context.ts';
import type { DecidedStep } from './step-objects.ts';
import { decideTransition, planTransition } from './transition.ts';

/** One request on a revision: a change, then a lifecycle step; either may be missing. */
export interface RevisionUpdate {
  readonly change?: RevisionChange;
  readonly action?: Action;
  /** Publish with closed gates; a policy names who may. */
  readonly breakGlass?: boolean;
  /** The commit that the request is based on. */
  readonly expectedCommit?: Oid;
  /** The actor named no version that they read. */
  readonly isUnseen?: boolean;
  /** With `approve`: the Git host merged the proposal, and the commit of the merge becomes the publication. */
  readonly merged?: MergedProposal;
  /** With `approve`: the merge of the Git host publishes, for which this decides. See `TransitionRequest.byMerge`. */
  readonly byMerge?: boolean;
  /** See `TransitionRequest.mustSuffice`. */
  readonly mustSuffice?: boolean;
  /** See `TransitionRequest.closedNow`. */
  readonly closedNow?: string;
  /** See `Transition.withdrawn`. */
  readonly withdrawn?: readonly Approval[];
  /** With `approve`: address of the review or pull request in which the actor approved. */
  readonly evidence?: string;
  /** With `evidence` of a review: its id on the host. */
  readonly review?: string;
}

/**
 * Plans a change and a lifecycle step as one set of ref updates; undefined if there is no difference, which is impossible with a
 * lifecycle step. `mainHead` is the head of the main branch when the plan will be committed; default: that of the index.
 */
export function planUpdate(
  repo: RepositoryContext,
  name: string,
  update: RevisionUpdate,
  context: RequestContext,
  mainHead?: Oid,
): Promise<WritePlan | undefined> {
  const span = update.action === undefined ? 'package.plan' : 'package.decide';
  return traced(span, {}, () => planRequest(repo, name, update, context, mainHead));
}

async function planRequest(
  repo: RepositoryContext,
  name: string,
  { change, action, expectedCommit, ...how }: RevisionUpdate,
  context: RequestContext,
  mainHead: Oid | undefined,
): Promise<WritePlan | undefined> {
  const revision = await repo.current(name);
  const expected = expectedCommit === undefined ? {} : { expectedCommit };
  const changed =
    change === undefined ? undefined : await planChange(repo, revision, { ...expected, ...change }, context);
  if (action === undefined) {
    if (context.face === 'controller') expectNotQueued(repo, revision, changed);
    return changed;
  }
  const step = { action, ...how };
  if (changed === undefined) return planTransition(repo, revision, { ...step, ...expected }, context, mainHead);
  const between = (await repo.preview(changed)) ?? revision;
  const moved = await planTransition(repo, between, { ...step, expectedCommit: between.commit }, context, mainHead);
  return {
    name: moved.name,
    updates: inSequence(changed.updates, moved.updates),
    marks: [...changed.marks, ...moved.marks],
    revokes: changed.revokes || moved.revokes,
  };
}

/**
 * A merge queue removes a pull request whose head moves, and no controller may do that to what users put there. What withdraws a verdict has to:
 * the queue would merge what is not ready any more.
 */
function expectNotQueued(repo: RepositoryContext, revision: PackageRevision, plan: WritePlan | undefined): void {
  const isCommit = plan?.updates.some(({ type, ref }) => type === 'update' && ref === revision.ref) === true;
  if (!isCommit || plan.revokes || !repo.refusals.isInMergeQueue(revision)) return;
  const message = `${revision.name} gets no commit while its pull request is in a merge queue of the Git host; it is tried again`;
  throw new SluiceError('Busy', message);
}

/** Decides on an approval that may share a commit with others; see `planTogether`. */
export function decideApproval(
  repo: RepositoryContext,
  name: string,
  { change: _change, action: _action, ...how }: RevisionUpdate,
  context: RequestContext,
  mainHead: Oid | undefined,
): Promise<DecidedStep> {
  return traced('package.decide', {}, async () =>
    decideTransition(repo, await repo.current(name), { action: 'approve', ...how }, context, mainHead),
  );
}

/** Two sets of ref updates, of which the second starts where the first ends, as one. */
export function inSequence(first: readonly RefUpdate[], second: readonly RefUpdate[]): RefUpdate[] {
  const updates = new Map(first.map((update) => [update.ref, update]));
  for (const update of second) {
    const earlier = updates.get(update.ref);
    const joined = earlier === undefined ? update : join(earlier, update);
    if (joined === undefined) updates.delete(update.ref);
    else updates.set(update.ref, joined);
  }
  return [...updates.values()];
}

/** Undefined if the second undoes what the first did. */
function join(first: RefUpdate, second: RefUpdate): RefUpdate | undefined {
  if (second.type === 'verify') return first;
  if (expectedValue(second) !== newValue(first))
    throw new SluiceError('Internal', `the updates of ${first.ref} do not follow from each other`);
  const { ref } = first;
  const old = expectedValue(first);
  const next = newValue(second);
  if (old === null) return next === null ? undefined : { type: 'create', ref, new: next };
  return next === null ? { type: 'delete', ref, old } : { type: 'update', ref, old, new: next };
}
