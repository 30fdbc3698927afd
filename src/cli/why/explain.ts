import { timestamp } from '../../foundation/clock.ts';
import { publishedRecordOf } from '../../package/commit-message.ts';
import { decide } from '../../package/kernel/decide.ts';
import type { Action, Refusal } from '../../package/kernel/types.ts';
import {
  isPlaceholder,
  isPublished,
  type PackageRevision,
  repositoryIdOf,
  revisionId,
} from '../../package/package-revision.ts';
import type { Judgement } from '../../package/revision-store.ts';
import { stateOf } from '../../package/write/transition.ts';
import type { Session } from '../assembly/session.ts';
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
    gates: explainGates(judgement, around),
    contributors: contributorsOf(judgement),
    ...(revision.lifecycle === 'Proposed' ? { approvals: explainApprovals(judgement) } : {}),
    reasons: [...account.reasons, ...working.reasons],
    resolvers: working.order,
    delivery: await explainDelivery(session, revision),
    next: account.next,
  };
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
function lastAction({ revision, record }: Judgement): Explanation['last'] {
  if (isPlaceholder(revision)) return undefined;
  const { facts, time, author } = revision.tip;
  const commit = { by: facts.actor ?? author, at: timestamp(time), action: facts.action ?? 'push' };
  // Steps after the publication stand in the record beside the approval commit.
  const step = revision.record?.steps.at(-1) ?? record.steps.at(-1);
  return step !== undefined && step.at >= commit.at ? { by: step.by, at: step.at, action: step.action } : commit;
}
