import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { PackageContent } from '../model/content/content.ts';
import type { Gate } from '../model/gates/gates.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { RevisionUpdate } from '../plan/update.ts';
import type { RevisionStoreOptions } from './revision-store-options.ts';

/** Parts of the evaluation of a revision. */
interface Evaluation {
  readonly content: PackageContent;
  readonly gates: readonly Gate[];
  readonly policy: EffectivePolicy;
}

/** Refuses an approval if a gate requires a condition that is currently false, regardless of its recorded value; otherwise warns. */
export async function checkApproval(
  revision: PackageRevision,
  evaluate: () => Promise<Evaluation>,
  problemOf: NonNullable<RevisionStoreOptions['approvalProblem']>,
  { breakGlass }: RevisionUpdate,
  context: RequestContext,
): Promise<void> {
  // The kernel refuses a revision that cannot be read.
  if (revision.kptfile === undefined) return;
  const { content, gates, policy } = await evaluate();
  const problem = await problemOf(revision, content.files);
  if (problem === undefined) return;
  const { type, message } = problem;
  const isGate = gates.some((gate) => gate.type === type);
  if (isGate && policy.enforcement === 'enforce' && breakGlass !== true)
    throw new SluiceError('Refused', `gate ${type} is closed now: ${message}`);
  context.warn?.(message);
}
