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

/**
 * Refuses an approval if a gate requires a condition that is currently false, regardless of its recorded value; otherwise warns. Returns the
 * update with the gate that the merge of the Git host bypassed.
 */
export async function checkApproval(
  revision: PackageRevision,
  evaluate: () => Promise<Evaluation>,
  problemOf: NonNullable<RevisionStoreOptions['approvalProblem']>,
  update: RevisionUpdate,
  context: RequestContext,
): Promise<RevisionUpdate> {
  // The kernel refuses a revision that cannot be read.
  if (revision.kptfile === undefined) return update;
  const { content, gates, policy } = await evaluate();
  const problem = await problemOf(revision, content.files);
  if (problem === undefined) return update;
  const { type, message } = problem;
  const isGate = gates.some((gate) => gate.type === type);
  const isClosed = isGate && policy.enforcement === 'enforce' && update.breakGlass !== true;
  if (isClosed && update.merged?.recordBypass !== true)
    throw new SluiceError('Refused', `gate ${type} is closed now: ${message}`);
  context.warn?.(message);
  return isClosed ? { ...update, closedNow: type } : update;
}
