import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { publishedRecordOf } from '../../model/record/commit-message.ts';
import type { Action } from '../../model/revision/revision-state.ts';
import { GATES_ANNOTATION } from '../../store/policies/effective-policy.ts';
import type { RevisionEntry } from '../objects/revision-entry.ts';

/** Warns the actor of closed gates that a step passed, where the repository warns instead of enforcing them. */
export function warnOfClosedGates(
  context: RequestContext,
  { revision, repository }: RevisionEntry,
  action: Action,
): void {
  if (action !== 'propose' && action !== 'approve') return;
  if (repository.policyFor(revision).enforcement !== 'warn') return;
  const record = action === 'approve' ? publishedRecordOf(revision.tip.facts) : revision.record;
  const gates = record?.steps.at(-1)?.gates ?? [];
  if (gates.length > 0)
    context.warn?.(`${revision.name}: closed gates: ${gates.join(', ')} (${GATES_ANNOTATION}: warn)`);
}

/** Warns an approver of what is published already, and names its approver. */
export function warnOfPublication(context: RequestContext, { metadata, spec, status }: Stored<RevisionObject>): void {
  context.warn?.(`${metadata.name} is published already as v${spec.revision}${approverText(status)}`);
}

/**
 * Describes who approved a publication, at the end of a sentence about it. For an out-of-band tag only the author of its
 * commit is known.
 */
export function approverText(status: RevisionObject['status']): string {
  if (status?.outOfBand !== undefined) return `, without an approval that counts (${status.outOfBand.reason})`;
  return status?.publishedBy === undefined ? '' : `, approved by ${status.publishedBy}`;
}
