import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { PushRefusedError } from '../../git/errors.ts';
import type { EntryPoint, RequestContext } from '../../resource/object/request-context.ts';
import type { PackageContent } from '../model/content/content.ts';
import { mainRef } from '../model/identity/layout.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../model/policy/review-policy.ts';
import { approvalsIn, type Decision, isDecision, type RevisionRecord } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { RevisionUpdate } from '../plan/update.ts';
import type { PackageRepository } from './package-repository.ts';

/** For so long, in milliseconds, no push is tried after the host has refused one to the main branch. */
const REFUSED_MS = 600_000;

/** Parts of the evaluation of a revision. */
interface Evaluation {
  readonly revision: PackageRevision;
  readonly content: Pick<PackageContent, 'content'>;
  readonly policy: Pick<EffectivePolicy, 'review'>;
  readonly record: Pick<RevisionRecord, 'approvals'>;
}

type ApprovedRepository = Pick<
  PackageRepository,
  'clock' | 'layout' | 'mainRefusedAt' | 'namespace' | 'policyFor' | 'writes'
>;

/**
 * Approves a proposal. Where a rule of the Git host refuses the push to the main branch, and a policy has proposals reviewed in pull requests, the
 * approval is recorded as a decision for the commit instead, and the controller of pull requests has the host merge it.
 */
export async function approveProposal(
  repository: ApprovedRepository,
  { name }: PackageRevision,
  update: RevisionUpdate,
  context: RequestContext,
  evaluate: () => Promise<Evaluation>,
): Promise<PackageRevision | undefined> {
  const push = () => repository.writes.update(name, update, context);
  const isMerged = ({ policy: { review } }: Evaluation) => review !== undefined && mergesOnHost(review, context.face);
  if (update.merged !== undefined || update.byMerge === true || update.breakGlass === true) return push();
  const { mainRefusedAt = Number.NEGATIVE_INFINITY, clock } = repository;
  const isRefused = clock.monotonic() - mainRefusedAt < REFUSED_MS;
  if (!isRefused) {
    try {
      return await push();
    } catch (error) {
      if (!isMainRefused(error, repository)) throw error;
      if (!isMerged(await evaluate())) throw error;
      repository.mainRefusedAt = clock.monotonic();
    }
  }
  const evaluation = await evaluate();
  if (!isMerged(evaluation)) return push();
  const decided = decisionOf(evaluation, repository.namespace);
  const isSame = decided?.subject === context.actor.name && decided.evidence === (update.evidence ?? context.evidence);
  if (decided !== undefined && isSame && decided.mergeOf === evaluation.revision.commit)
    throw new SluiceError(
      'Refused',
      `${name} is approved already, by ${decided.subject} at ${decided.at}, and ${REVIEW_ACTOR} publishes it by the merge of its pull request (WaitsForMerge); see "sluice why ${name}"`,
    );
  return repository.writes.update(name, { ...update, byMerge: true }, context);
}

/** The last decision that a merge of the Git host publishes the present content; undefined if none stands. */
export function decisionOf(
  { record, content }: Pick<Evaluation, 'content' | 'record'>,
  namespace: string | undefined,
): Decision | undefined {
  return approvalsIn(record, namespace)
    .filter(isDecision)
    .findLast((one) => one.content === content.content);
}

/**
 * All decisions about the present content, the last one first, and then those that were withdrawn: the host may have merged by one of them, and what
 * they were made by may stand again.
 */
export function decisionsMade(
  { record, content }: Pick<Evaluation, 'content' | 'record'>,
  namespace: string | undefined,
): Decision[] {
  const made = approvalsIn(record, namespace)
    .filter((one): one is Decision => one.mergeOf !== undefined && one.content === content.content)
    .reverse();
  return [...made.filter(isDecision), ...made.filter((one) => !isDecision(one))];
}

/** True for a proposal that is approved, and that a merge of the Git host publishes. */
export function isDecided({ namespace, tip, record }: Pick<PackageRevision, 'namespace' | 'record' | 'tip'>): boolean {
  return approvalsIn(record ?? {}, namespace).some((one) => isDecision(one) && one.tree === tip.tree);
}

/**
 * True for content of the main branch that the Git host was to merge: a proposal of the package is approved with it, and is published once the merge
 * was read.
 */
export function isMergeOfDecision(
  { key, tip: { tree }, namespace }: Pick<PackageRevision, 'key' | 'namespace' | 'tip'>,
  repository: Pick<PackageRepository, 'index'> | undefined,
): boolean {
  const proposed = (repository?.index.ofPackage(key.package) ?? []).filter(({ lifecycle }) => lifecycle === 'Proposed');
  return proposed.some(({ record = {} }) =>
    approvalsIn(record, namespace).some((one) => isDecision(one) && one.tree === tree),
  );
}

/**
 * True for content of the main branch that a merge on the host may have brought, which is published once that was read: an open proposal of the package
 * has it, or it can be of a pull request of a user.
 */
export function isPublishedByMerge(
  onMain: PackageRevision,
  repository: Pick<PackageRepository, 'index' | 'policyFor'> | undefined,
): boolean {
  if (repository === undefined) return false;
  const own = repository.policyFor(onMain).review;
  if (own !== undefined && own.publishOn !== 'approval' && own.userPullRequests !== 'ignore') return true;
  return repository.index
    .ofPackage(onMain.key.package)
    .some(
      (one) =>
        one.lifecycle === 'Proposed' &&
        one.tip.tree === onMain.tip.tree &&
        repository.policyFor(one).review?.publishOn === 'merge',
    );
}

/**
 * True if Sluice has the host merge what was approved through this entry point. With `publishOn: merge` users merge, who see the refusal of the
 * push; what a controller approves, such as a WavePlan that holds the pull request until then, is merged as with the others.
 */
export function mergesOnHost({ publishOn }: Pick<ReviewPolicy, 'publishOn'>, face: string): boolean {
  return publishOn !== 'merge' || face === ('controller' satisfies EntryPoint);
}

/** True for the error of a push for which a rule of the Git host refuses the main branch. */
export function isMainRefused(error: unknown, { layout }: Pick<PackageRepository, 'layout'>): boolean {
  if (!isSluiceError(error, 'PushRefused') || !(error instanceof PushRefusedError)) return false;
  return error.details?.ref === mainRef(layout);
}
