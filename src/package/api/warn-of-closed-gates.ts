import type { PackageRevision as RevisionObject } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { publishedRecordOf } from '../model/commit-message.ts';
import type { Action } from '../model/types.ts';
import { GATES_ANNOTATION } from '../store/policy-objects.ts';
import type { RevisionEntry } from './revision-entry.ts';

/** Where gates are not enforced but warned of, whoever passes a closed one is told. */
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

/** Who approves what is published already is told by whom it was. */
export function warnOfPublication(context: RequestContext, { metadata, spec, status }: Stored<RevisionObject>): void {
  context.warn?.(`${metadata.name} is published already as v${spec.revision}${approverText(status)}`);
}

/** Who approved a publication, at the end of a sentence about it. A tag that is out of band names only who made its commit. */
export function approverText(status: RevisionObject['status']): string {
  if (status?.outOfBand !== undefined) return `, without an approval that counts (${status.outOfBand.reason})`;
  return status?.publishedBy === undefined ? '' : `, approved by ${status.publishedBy}`;
}
