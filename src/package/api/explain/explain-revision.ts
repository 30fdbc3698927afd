import { timestamp } from '../../../foundation/time/clock.ts';
import { decide } from '../../kernel/decide.ts';
import type { Gate } from '../../model/gates/gates.ts';
import { publishedRecordOf } from '../../model/record/commit-message.ts';
import { lastRequestOf } from '../../model/revision/attribution.ts';
import type { Explanation, Reason } from '../../model/revision/explanation.ts';
import {
  isPlaceholder,
  isPublished,
  type PackageRevision,
  repositoryIdOf,
  revisionId,
} from '../../model/revision/package-revision.ts';
import type { Action, Refusal } from '../../model/revision/revision-state.ts';
import { stateOf } from '../../plan/read-state.ts';
import { recordedBypass } from '../../plan/records/recorded-bypass.ts';
import type { RevisionEvaluation } from '../../store/evaluate-revision.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import { refusedPushesOf } from './explain-state.ts';
import { type ExplainedRevision, type Explainer, type Surroundings, sluiceCommand } from './explainer.ts';
import { orderSteps } from './order-steps.ts';

/** Everything that keeps a revision where it is. Its repository is open; for dependents all should be. */
export async function explainRevision(
  store: RevisionStore,
  revision: PackageRevision,
  explainers: readonly Explainer[],
  surroundings: Surroundings,
): Promise<Explanation> {
  const { repository, package: path, workspace } = revision.key;
  const siblings = store
    .list({ repository: repositoryIdOf(revision), package: path })
    .filter((other) => other.name !== revision.name);
  const own = asPublished(await store.evaluate(revisionId(revision)));
  const evaluation = isPlaceholder(revision) ? { ...own, gates: await gatesOnMain(store, own, siblings) } : own;
  const explained: ExplainedRevision = {
    evaluation,
    siblings,
    refusals: await refusalsOf(store, evaluation, surroundings.now),
    recordFlaw: recordFlawOf(store, revision),
  };
  const findings = [];
  for (const explainer of explainers) findings.push(await explainer.explain(explained, surroundings));
  const approvals = findings.find((one) => one.approvals !== undefined)?.approvals;
  const last = await lastAction(store, evaluation);
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
    enforcement: evaluation.policy.enforcement,
    gates: findings.flatMap(({ gates = [] }) => gates),
    contributors: contributorsOf(evaluation),
    ...(approvals === undefined ? {} : { approvals }),
    reasons: findings.flatMap(({ reasons = [] }) => reasons),
    resolvers: findings.flatMap(({ resolvers = [] }) => resolvers),
    delivery: findings.flatMap(({ delivery = [] }) => delivery),
    next: nextSteps(
      store,
      revision,
      orderSteps(
        revision,
        findings.flatMap(({ next = [] }) => next),
      ),
    ),
    alternatives: findings.flatMap(({ alternatives = [] }) => alternatives),
  };
}

/**
 * The gates of the package on the main branch are those of the publication that has the same files. The head of the branch, which moves
 * with each publication of another package, reports neither their issuers nor their times.
 */
async function gatesOnMain(
  store: RevisionStore,
  { revision: { tip }, gates }: RevisionEvaluation,
  siblings: readonly PackageRevision[],
): Promise<readonly Gate[]> {
  const published = siblings
    .filter((other) => isPublished(other) && other.outOfBand === undefined && other.tip.tree === tip.tree)
    .sort((one, other) => other.revision - one.revision);
  const [source] = published;
  if (source !== undefined) return asPublished(await store.evaluate(revisionId(source))).gates;
  const explanation = 'no published revision has the files of the main branch, so that no record proves the condition';
  return gates.map((gate) => ({
    ...gate,
    ...(gate.condition?.status === 'True' ? { state: 'Unproven' as const, explanation } : {}),
    changed: [],
    verdict: undefined,
    since: undefined,
  }));
}

/**
 * Later policies do not change what was published: the gates are those of the statement, as they were at the approval. What did not come
 * through the gates was not evaluated.
 */
function asPublished(evaluation: RevisionEvaluation): RevisionEvaluation {
  const { revision, gates } = evaluation;
  if (isPlaceholder(revision) || !isPublished(revision)) return evaluation;
  const unproven = { approveOnly: false, verdict: undefined, changed: [], since: undefined };
  const unknown = { ...unproven, condition: undefined };
  if (revision.outOfBand !== undefined) {
    // Its conditions are those of the published Kptfile, whose record does not count.
    const explanation =
      'no gate decided about it: it did not come through the gates, so that no record proves the condition';
    return { ...evaluation, gates: gates.map((gate) => ({ ...gate, ...unproven, state: 'Unproven', explanation })) };
  }
  const stated = publishedRecordOf(revision.tip.facts)?.gates;
  if (stated === undefined) return evaluation;
  const now = new Map(gates.map((gate) => [gate.type, gate]));
  const approved = stated.map(({ type, requiredBy, state }): Gate => {
    const gate = now.get(type);
    if (gate?.state === state) return { ...gate, requiredBy };
    const atApproval = state === 'Open' ? 'Open' : 'NotTrue';
    return { ...unknown, ...gate, type, requiredBy, state: atApproval, explanation: `${state} at the approval` };
  });
  return { ...evaluation, gates: approved };
}

/** The Git host refuses the same command again until its rule is changed, which no command of Sluice does. */
function nextSteps(store: RevisionStore, revision: PackageRevision, commands: readonly string[]): readonly string[] {
  const { url } = store.repositoryOf(revision);
  if (refusedPushesOf(store, revision).length === 0) return commands;
  const permit = `permit Sluice's account what the Git host refused, at ${url} (branch protection, hooks, rights)`;
  const [first, ...others] = commands;
  return [first === undefined ? permit : `${permit}, then: ${first}`, ...others];
}

/** Returns why verdicts and approvals of an unpublished revision do not count, if they do not. */
function recordFlawOf(store: RevisionStore, revision: PackageRevision): Reason | undefined {
  const { name, key, path, lifecycle, recordDistrust, statement } = revision;
  if (lifecycle !== 'Draft' && lifecycle !== 'Proposed') return undefined;
  const what = lifecycle === 'Draft' ? 'draft' : 'proposal';
  const affirm = sluiceCommand('rpkg', 'condition', 'set', name, 'TYPE', 'True');
  const advice = `affirm the conditions, for example with "${affirm}"`;
  if (recordDistrust !== undefined) {
    const { reason, message } = recordDistrust;
    const next = reason === 'Unverified' ? 'this takes a moment' : advice;
    return { reason: 'RecordDoesNotCount', message: `the record of this ${what} does not count: ${message}; ${next}` };
  }
  const { trust } = store.repositoryOf(revision);
  if (statement === undefined || trust.isProven({ package: path, workspace: key.workspace }, statement))
    return undefined;
  const message = `the record of this ${what} was there when the repository was first seen, so that it may be older than the last one, and its verdicts do not count; ${advice}`;
  return { reason: 'RecordUnproven', message };
}

/** The contributors of a published revision are in its statement. */
function contributorsOf({ revision, record }: RevisionEvaluation): Explanation['contributors'] {
  const published = isPublished(revision) && revision.outOfBand === undefined;
  const all = published ? publishedRecordOf(revision.tip.facts)?.contributors : record.contributors;
  return (all ?? []).map(({ name, face, since }) => ({ name, face, since }));
}

/** Returns the kernel's refusals of the next step, except for gates. */
async function refusalsOf(
  store: RevisionStore,
  { revision, policy }: RevisionEvaluation,
  now: number,
): Promise<Refusal[]> {
  const actions: Readonly<Record<string, Action>> = { Draft: 'propose', Proposed: 'approve' };
  const action = actions[revision.lifecycle];
  if (action === undefined) return [];
  const state = await stateOf(store.repositoryOf(revision), revision);
  // No particular user: users whom a policy does not permit to approve are listed separately.
  const request = { action, actor: { name: 'any-user' }, face: 'cli' } as const;
  const decision = decide(state, request, policy, timestamp(now));
  if (decision.allowed) return [];
  return decision.refusals.filter((refusal) => refusal.gate === undefined && refusal.code !== 'NotAllowed');
}

/** Undefined for the placeholder: the head of the main branch may be about another package. */
async function lastAction(store: RevisionStore, { revision }: RevisionEvaluation): Promise<Explanation['last']> {
  if (isPlaceholder(revision)) return undefined;
  const bypass = await recordedBypass(revision, store.repositoryOf(revision).trust);
  const { by, at, action } = bypass ?? lastRequestOf(revision);
  return { by, at, action };
}
