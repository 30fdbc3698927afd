import { SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Oid } from '../../git/git-repository.ts';
import { refuseBlocked } from '../kernel/approver.ts';
import { blockingRules } from '../kernel/blocking-rules.ts';
import { formatCommitMessage, type PackageAnnotation } from '../model/record/commit-message.ts';
import { signatures, type WritePlan } from './ports/repository-context.ts';
import { annotationOf, contentOf, type DecidedStep, statementOf, writePublicationTag } from './step-objects.ts';
import { planStep, planWith, TransitionRefusedError } from './transition.ts';

/** Characters of the lines that name the packages of a commit. Its message is read up to 256 KiB, and Sluice needs none of these lines. */
const MAX_ANNOTATION_CHARACTERS = 128 * 1024;

/** Some of several steps cannot be planned; `causes` has the reason of each. */
export class SharedStepsError extends Error {
  readonly causes: ReadonlyMap<DecidedStep, unknown>;

  constructor(causes: ReadonlyMap<DecidedStep, unknown>) {
    super(`cannot plan ${[...causes.keys()].map(({ revision }) => revision.name).join(', ')}`);
    this.name = 'SharedStepsError';
    this.causes = causes;
  }
}

/**
 * Plans steps of one repository, which were decided one by one at the same head of the main branch, in one transaction. Those that publish share
 * one commit:
 *
 * - its first parent is that head, and its tree is that of the head with the package of each step in the place of the one before. No two of
 *   the packages are the same, or one in the other (`chooseBatch`), so that each decision holds for this commit as for one of its own;
 * - its other parents are the drafts;
 * - each publication has an annotated tag on the commit with a statement of its own, which names the commit. So it counts for no other commit,
 *   and as the id of the commit depends on its content, no commit can carry it.
 *
 * One publication alone has a commit of its own. Returns the plans in order; each that publishes moves the main branch to the same commit.
 * Throws SharedStepsError with all steps that are the reason of a failure, so that the others are planned only once more.
 */
export async function planTogether(steps: readonly DecidedStep[]): Promise<WritePlan[]> {
  const publishing = steps.filter(isPublication);
  const [first] = publishing;
  const shared = first === undefined || publishing.length < 2 ? undefined : await writeSharedCommit(first, publishing);
  const plans: WritePlan[] = [];
  const causes = new Map<DecidedStep, unknown>();
  for (const step of steps) {
    try {
      plans.push(shared !== undefined && isPublication(step) ? await planIn(step, shared) : await planStep(step));
    } catch (error) {
      causes.set(step, error);
    }
  }
  // To plan hundreds takes seconds, in which a freeze can begin.
  if (shared !== undefined)
    await Promise.all(publishing.map((step) => expectNoFreeze(step).catch((error) => causes.set(step, error))));
  if (causes.size > 0) throw new SharedStepsError(causes);
  return plans;
}

/** Throws TransitionRefusedError if a freeze has begun since the decision; `current` reads what was acknowledged, however late a watch is. */
async function expectNoFreeze({ repo, revision, action, reading, decision }: DecidedStep): Promise<void> {
  if (decision.brokeGlass === true) return;
  const { freezes } = repo.policyFor(await repo.current(revision.name));
  const blocking = blockingRules(reading.state, { approvalRules: [], freezes }, timestamp(repo.clock.now()));
  if (blocking.length > 0)
    throw new TransitionRefusedError(revision, action, { allowed: false, refusals: blocking.map(refuseBlocked) });
}

interface SharedCommit {
  readonly oid: Oid;
  readonly onto: Oid;
}

/** True for a step that makes a commit on the main branch. Others record an approval that is not enough. */
function isPublication({ decision }: DecidedStep): boolean {
  return decision.plan.some(({ become }) => become.kind === 'approval');
}

async function writeSharedCommit(first: DecidedStep, steps: readonly DecidedStep[]): Promise<SharedCommit> {
  const { repo, context } = first;
  const { reason: _reason, ...withoutReason } = context;
  const onto = first.reading.state.mainHead;
  if (onto === undefined || steps.some(({ reading }) => reading.state.mainHead !== onto))
    throw new SluiceError('Internal', 'the steps of a commit were decided at different heads of the main branch');
  const folders = new Map(
    steps.map((step) => [step.revision.path, { oid: contentOf(step).tree, mode: '040000' }] as const),
  );
  if (folders.size < steps.length) throw new SluiceError('Internal', 'two steps of a commit are about one package');
  const base = await repo.git.readCommit(onto);
  const oid = await repo.git.writeCommit({
    tree: await repo.git.editTree(base.tree, folders),
    // A push can propose several packages by one commit.
    parents: [...new Set([onto, ...steps.map(({ revision }) => revision.commit)])],
    ...signatures(repo, context),
    message: formatCommitMessage(`Approving ${steps.length} package revisions`, {
      annotations: annotationsOf(steps),
      // The tag of each names its own.
      context: steps.every((step) => step.context.reason === context.reason) ? context : withoutReason,
      action: 'approve',
    }),
  });
  return { oid, onto };
}

async function planIn(step: DecidedStep, { oid, onto }: SharedCommit): Promise<WritePlan> {
  const tag = await writePublicationTag(step, oid, await statementOf(step, onto, { sharedCommit: oid }));
  return planWith(step, { made: oid, ...tag });
}

/** Porch reads the workspace of a publication there. */
function annotationsOf(steps: readonly DecidedStep[]): PackageAnnotation[] {
  let characters = 0;
  return steps.map(annotationOf).filter((annotation) => {
    characters += JSON.stringify(annotation).length;
    return characters <= MAX_ANNOTATION_CHARACTERS;
  });
}
