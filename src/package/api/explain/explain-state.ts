import { lookalikesOf } from '../../model/policy/lookalikes.ts';
import { publishedRecordOf } from '../../model/record/commit-message.ts';
import type { LifecycleStep } from '../../model/record/record.ts';
import type { Reason } from '../../model/revision/explanation.ts';
import { isPlaceholder, type PackageRevision } from '../../model/revision/package-revision.ts';
import type { Refusal } from '../../model/revision/revision-state.ts';
import { adoptionOf } from '../../plan/records/adoption-of.ts';
import { recordedBypass } from '../../plan/records/recorded-bypass.ts';
import type { RevisionEvaluation } from '../../store/evaluate-revision.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import type { RefusalNote } from '../../transaction/stored-refusals.ts';
import { type ExplainedRevision, type Explainer, type Findings, repairSteps, sluiceCommand } from './explainer.ts';

/**
 * Explains a revision from the repository, the record and the lifecycle. `settingOf` returns the setting that a command takes which connects to an
 * address by itself.
 */
export function stateExplainer(
  store: Pick<RevisionStore, 'repositoryOf' | 'dependentsOf' | 'find'>,
  settingOf: (url: string) => string | undefined = () => undefined,
): Explainer {
  return {
    async explain(explained) {
      const { evaluation, recordFlaw } = explained;
      const { revision } = evaluation;
      const repository = store.repositoryOf(revision);
      // What its pull request waited for does not matter to a proposal that was rejected.
      const bypass = await recordedBypass(revision, repository.trust);
      const refusals = repository.refusals
        .of(revision.name)
        .filter(({ reason }) => reason === 'PushRefused' || revision.lifecycle === 'Proposed');
      const reasons: Reason[] = [
        ...refusals.map(({ reason, message }) => ({
          reason,
          message: reason === 'PushRefused' ? `the last write was refused: ${message}` : message,
        })),
        ...(recordFlaw === undefined ? [] : [recordFlaw]),
        ...stateReasons(evaluation),
        ...mergeReasons(bypass),
        ...adoptionReasons(await adoptionOf(repository, revision)),
      ];
      if (isPlaceholder(revision)) {
        const main = placeholderFindings(explained);
        return { ...main, reasons: [...reasons, ...(main.reasons ?? [])] };
      }
      if (revision.lifecycle === 'Draft' || revision.lifecycle === 'Proposed')
        return { reasons, next: refusals.flatMap((note) => stepsAfter(note, evaluation)) };
      // Until its adoption, its flaw lists the gates.
      if (bypass === undefined || revision.outOfBand === undefined)
        reasons.push(...publicationReasons(evaluation, bypass));
      if (revision.lifecycle === 'Published')
        return revision.outOfBand === undefined
          ? { reasons }
          : { reasons, next: adoption(revision.key.repository, settingOf(repository.url)) };
      const deletion = deletionFindings(evaluation, dependentsIn(store, revision));
      return { ...deletion, reasons: [...reasons, ...(deletion.reasons ?? [])] };
    },
  };
}

/** The merge is done, and publishes nothing: what is proposed ends first, whatever follows. */
function stepsAfter(
  { reason, next }: RefusalNote,
  { revision: { name }, policy: { review } }: RevisionEvaluation,
): string[] {
  if (reason === 'MergeNotPublished') return [sluiceCommand('rpkg', 'reject', name)];
  // The explanation of the policy has the command for its Secret, or for the field that is wrong.
  if (reason === 'PullRequestFailed' && review !== undefined)
    return [sluiceCommand('why', `packagepolicy/${review.policy}`)];
  return next === undefined ? [] : [next];
}

/** It connects to the Git host itself, and not through the server. */
function adoption(repository: string, setting: string | undefined): string[] {
  const command = sluiceCommand('repo', 'adopt', repository);
  return setting === undefined ? [command] : [command, `set ${setting} for it, as it connects to the host itself`];
}

/** Who merged which pull request past the gates. */
function mergeReasons(bypass: LifecycleStep | undefined): Reason[] {
  if (bypass?.reason === undefined) return [];
  return [{ reason: 'MergedOnHost', message: `${bypass.reason}, which was recorded at ${bypass.at}` }];
}

/** Which operator had it count in spite of how it was published. */
function adoptionReasons(adoption: LifecycleStep | undefined): Reason[] {
  if (adoption === undefined) return [];
  return [{ reason: 'Adopted', message: `it counts since it was adopted at ${adoption.at} (${adoption.by})` }];
}

/** Writes of a revision that a rule of the Git host refused. */
export function refusedPushesOf(store: Pick<RevisionStore, 'repositoryOf'>, revision: PackageRevision) {
  const refused = store.repositoryOf(revision).refusals.refusedPushes();
  return refused.filter((push) => push.revision === revision.name);
}

/** Explains the kernel's refusals of the next step, except for gates. */
export const kernelExplainer: Explainer = {
  explain({ refusals, evaluation: { revision, invalid, conflict, overtaken } }) {
    // Rules for approvals are explained with the approvals.
    const others = refusals.filter(({ blockedBy }) => blockedBy === undefined);
    const reasons = others.map(({ code, message }): Reason => ({ reason: code, message }));
    // It refuses the step after the next one.
    if (revision.lifecycle === 'Draft' && conflict !== undefined)
      reasons.push({ reason: conflict.code, message: conflict.message });
    if (refusals.length === 0 && revision.lifecycle === 'Draft' && revision.problem !== undefined)
      reasons.push({ reason: 'Unreadable', message: `the Kptfile cannot be read: ${revision.problem}` });
    // Of a draft another explainer names them.
    if (invalid !== undefined && revision.lifecycle === 'Proposed')
      return { reasons, next: repairOfProposal(revision, invalid) };
    if (conflict !== undefined) return { reasons, next: conflictSteps(revision) };
    if (overtaken === undefined) return { reasons };
    reasons.push({ reason: overtaken.code, message: overtaken.message });
    const step = revision.lifecycle === 'Draft' ? 'rebase' : 'reject';
    return {
      reasons,
      next: [sluiceCommand('rpkg', 'diff', revision.name, 'latest'), sluiceCommand('rpkg', step, revision.name)],
    };
  },
};

/** How a proposed package is made one that can be published: no edit moves it out of another package. */
function repairOfProposal(revision: PackageRevision, { code }: Refusal): string[] {
  const reject = sluiceCommand('rpkg', 'reject', revision.name);
  if (code === 'NestedPackage') return [reject, sluiceCommand('rpkg', 'del', revision.name)];
  return [reject, ...repairSteps(revision), sluiceCommand('rpkg', 'propose', revision.name)];
}

/** How the edit on the main branch is merged into the draft. */
function conflictSteps({ name, lifecycle }: PackageRevision): string[] {
  const rebase = sluiceCommand('rpkg', 'rebase', name);
  if (lifecycle === 'Draft') return [rebase];
  return [sluiceCommand('rpkg', 'reject', name), rebase, sluiceCommand('rpkg', 'propose', name)];
}

function stateReasons({ revision, record, policy }: RevisionEvaluation): Reason[] {
  const reasons: Reason[] = [];
  if (revision.outOfBand !== undefined) {
    const { reason, message } = revision.outOfBand;
    reasons.push({ reason: 'OutOfBand', message: `it did not come through the gates (${reason}): ${message}` });
  }
  if (revision.hides.length > 0) reasons.push({ reason: 'NameTaken', message: hiddenRefsMessage(revision.hides) });
  if (record.deletionTimestamp !== undefined) {
    const finalizers = record.finalizers?.join(', ') ?? '';
    reasons.push({
      reason: 'BeingDeleted',
      message: `it is being deleted since ${record.deletionTimestamp} and waits for the finalizers ${finalizers}`,
    });
  }
  // Conditions and gates from a push that users could mistake for others. They open no gate.
  for (const message of lookalikesOf(revision.kptfile, policy))
    reasons.push({ reason: 'Lookalike', message: `${message}; look at it closely` });
  return reasons;
}

/** As in Porch, the folder stays on the main branch after the last numbered revision was deleted, until it is deleted itself. */
function placeholderFindings({ siblings, evaluation: { revision } }: ExplainedRevision): Findings {
  const { name, lifecycle } = revision;
  const what = 'it represents the package on the main branch';
  const finding = (more: string) => [{ reason: 'MainBranch', message: `${what}; ${more}` }];
  const latest = siblings.find((sibling) => sibling.latest);
  if (lifecycle === 'DeletionProposed')
    return {
      reasons: finding('it is proposed for deletion, and waits for a user to delete or to keep it'),
      next: [sluiceCommand('rpkg', 'del', name)],
      alternatives: [sluiceCommand('rpkg', 'reject', name)],
    };
  if (latest !== undefined) return { reasons: finding(`the latest published revision is ${latest.name}`) };
  return {
    reasons: finding('no revision of it is published any more, and its files stay there until this one is deleted'),
    next: [sluiceCommand('rpkg', 'propose-delete', name), sluiceCommand('rpkg', 'del', name)],
  };
}

/** Describes how it was published, if that is notable. */
function publicationReasons(
  { record: { steps }, revision }: RevisionEvaluation,
  bypass: LifecycleStep | undefined,
): Reason[] {
  const approved = steps.findLast(({ action }) => action === 'approve');
  const broken = revision.outOfBand === undefined ? publishedRecordOf(revision.tip.facts)?.breakGlass : undefined;
  if (broken !== undefined) {
    const gates = approved?.gates?.join(', ') ?? '';
    const rules = publishedRecordOf(revision.tip.facts)?.rulesBypassed ?? [];
    const how = rules.length === 0 ? 'with closed gates' : 'while rules blocked it';
    const what = [...(gates === '' ? [] : [gates]), ...rules].join('; ');
    const message = `${broken.by} published it ${how}, as a policy lets them (break-glass): ${what}; reason: ${broken.reason}`;
    return [{ reason: 'BreakGlass', message }];
  }
  if (approved?.gates === undefined || approved.gates.length === 0) return [];
  const how = bypass === undefined ? `${approved.by} approved it at ${approved.at}` : 'the Git host merged it';
  const message = `${how} while gates were closed: ${approved.gates.join(', ')}`;
  return [{ reason: 'GatesPassedBy', message }];
}

/** Packages that come from a revision; those of other namespaces, which its readers may not see, are only counted. */
function dependentsIn(store: Pick<RevisionStore, 'dependentsOf' | 'find'>, revision: PackageRevision): string[] {
  const all = store.dependentsOf(revision);
  const own = all.filter((name) => store.find(`${revision.namespace}/${name}`) !== undefined);
  const others = all.length - own.length;
  return others === 0 ? own : [...own, `${others} in other namespaces`];
}

function deletionFindings({ revision }: RevisionEvaluation, dependents: readonly string[]): Findings {
  const { name, record } = revision;
  const step = record?.steps.findLast(({ action }) => action === 'propose-deletion');
  const why = step?.reason === undefined ? '' : ` (${step.reason})`;
  const by = step === undefined ? '' : ` since ${step.at}, by ${step.by}${why}`;
  const inUse = `it cannot be deleted while other packages come from it: ${dependents.join(', ')}`;
  return {
    reasons: [
      ...(dependents.length === 0 ? [] : [{ reason: 'InUse', message: inUse }]),
      {
        reason: 'WaitsForDeletion',
        message: `it is proposed for deletion${by}, and waits for a user to delete or to keep it`,
      },
    ],
    next: dependents.length === 0 ? [sluiceCommand('rpkg', 'del', name)] : [],
    alternatives: [sluiceCommand('rpkg', 'reject', name)],
  };
}

/** Returns the message about refs that are hidden because they would have the same name as a revision. */
export function hiddenRefsMessage(refs: readonly string[]): string {
  const [are, it] = refs.length === 1 ? ['is', 'it'] : ['are', 'each of them'];
  return `${refs.join(' and ')} would have the same name and ${are} not shown; push ${it} under a workspace of its own`;
}
