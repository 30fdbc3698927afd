import { timestamp } from '../../foundation/clock.ts';
import { decide } from '../../package/kernel/decide.ts';
import { lastRequestOf } from '../../package/model/attribution.ts';
import { publishedRecordOf } from '../../package/model/commit-message.ts';
import {
  isPlaceholder,
  isPublished,
  type PackageRevision,
  repositoryIdOf,
  revisionId,
} from '../../package/model/package-revision.ts';
import type { Action, Refusal } from '../../package/model/types.ts';
import { stateOf } from '../../package/plan/read-state.ts';
import type { Judgement } from '../../package/store/revision-store.ts';
import type { Session } from '../session.ts';
import { explainApprovals } from './explain-approvals.ts';
import { explainDelivery } from './explain-delivery.ts';
import { explainGates, type Surroundings } from './explain-gates.ts';
import { explainLifecycle } from './explain-lifecycle.ts';
import { explainResolvers } from './explain-resolvers.ts';
import type { Explanation } from './explanation.ts';

/** Everything that keeps a revision where it is. Its repository is open; for dependents all should be. */
export async function explain(
  session: Session,
  revision: PackageRevision,
  around: Surroundings & { readonly disabled: readonly string[] },
): Promise<Explanation> {
  const judgement = await session.store.judge(revisionId(revision));
  const { repository, package: path, workspace } = revision.key;
  const account = explainLifecycle(
    {
      judgement,
      siblings: session.store
        .list({ repository: repositoryIdOf(revision), package: path })
        .filter((other) => other.name !== revision.name),
      refusals: await refusalsOf(session, judgement),
      dependents: revision.lifecycle === 'DeletionProposed' ? session.store.dependentsOf(revision) : [],
      disabled: around.disabled,
    },
    around,
  );
  const working = explainResolvers(judgement, around);
  const last = lastAction(judgement);
  const recordFlaw = recordFlawOf(session, revision);
  return {
    name: revision.name,
    repository,
    package: path,
    workspace,
    lifecycle: revision.lifecycle,
    revision: revision.revision,
    latest: revision.latest,
    commit: revision.commit,
    ...(last === undefined ? {} : { last }),
    enforcement: judgement.policy.enforcement,
    gates: explainGates(judgement, around, recordFlaw?.message),
    contributors: contributorsOf(judgement),
    ...(revision.lifecycle === 'Proposed' ? { approvals: explainApprovals(judgement) } : {}),
    reasons: [
      ...refusedPushOf(session, revision),
      ...(recordFlaw === undefined ? [] : [recordFlaw]),
      ...account.reasons,
      ...working.reasons,
    ],
    resolvers: working.order,
    delivery: await explainDelivery(session, revision),
    next: account.next,
  };
}

/** A rule of the Git host that keeps the revision as it is. */
function refusedPushOf(session: Session, revision: PackageRevision) {
  const refused = session.store.repositoryOf(revision).refusedPushes();
  return refused
    .filter((push) => push.revision === revision.name)
    .map(({ message }) => ({ reason: 'PushRefused', message: `the last write was refused: ${message}` }));
}

/** Why verdicts and approvals of a revision that is not published do not count, if they do not. */
function recordFlawOf(session: Session, revision: PackageRevision) {
  const { name, key, path, lifecycle, recordDistrust, statement } = revision;
  if (lifecycle !== 'Draft' && lifecycle !== 'Proposed') return undefined;
  const what = lifecycle === 'Draft' ? 'draft' : 'proposal';
  const advice = `affirm the conditions, for example with "sluice rpkg condition set ${name} TYPE True"`;
  if (recordDistrust !== undefined) {
    const { reason, message } = recordDistrust;
    const next = reason === 'Unverified' ? 'this takes a moment' : advice;
    return { reason: 'RecordDoesNotCount', message: `the record of this ${what} does not count: ${message}; ${next}` };
  }
  const { trust } = session.store.repositoryOf(revision);
  if (statement === undefined || trust.isProven({ package: path, workspace: key.workspace }, statement))
    return undefined;
  const message = `the record of this ${what} was there when the repository was first seen, so that it may be older than the last one, and its verdicts do not count; ${advice}`;
  return { reason: 'RecordUnproven', message };
}

/** Who wrote what is published stands in its statement. */
function contributorsOf({ revision, record }: Judgement): Explanation['contributors'] {
  const published = isPublished(revision) && revision.outOfBand === undefined;
  const all = published ? publishedRecordOf(revision.tip.facts)?.contributors : record.contributors;
  return (all ?? []).map(({ name, face, since }) => ({ name, face, since }));
}

/** What the kernel holds against the next step besides gates. */
async function refusalsOf(session: Session, { revision, policy }: Judgement): Promise<Refusal[]> {
  const actions: Readonly<Record<string, Action>> = { Draft: 'propose', Proposed: 'approve' };
  const action = actions[revision.lifecycle];
  if (action === undefined) return [];
  const state = await stateOf(session.store.repositoryOf(revision), revision);
  // Nobody in particular asks: whom a policy does not let approve is told apart from this.
  const request = { action, actor: { name: 'somebody' }, face: 'cli' } as const;
  const decision = decide(state, request, policy, timestamp(session.clock.now()));
  if (decision.allowed) return [];
  return decision.refusals.filter((refusal) => refusal.gate === undefined && refusal.code !== 'NotAllowed');
}

/** Undefined for the placeholder: the head of the main branch may be about another package. */
function lastAction({ revision }: Judgement): Explanation['last'] {
  if (isPlaceholder(revision)) return undefined;
  const { by, at, action } = lastRequestOf(revision);
  return { by, at, action };
}
