import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import type { ObjectKey } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { type WrittenMetadata, withMetadata } from '../../model/record/object-metadata.ts';
import { emptyRecord } from '../../model/record/record.ts';
import type { PolicySubject } from '../../model/revision/package-revision.ts';

/**
 * What a change of labels or owners means for the approval of a revision, such as `the label "tier" lets WavePlan web approve it`; undefined if
 * nothing.
 */
export type SelectionCheck = (before: PolicySubject, after: PolicySubject) => string | undefined;

/** Reads the policies and plans that can select revisions of a Repository. */
export type ReadSelectionCheck = (repository: ObjectKey) => Promise<SelectionCheck>;

/** True if the metadata by which policies and plans select differs. */
export function changesSelection(stored: RevisionObject | undefined, { metadata }: RevisionObject): boolean {
  const { labels = {}, ownerReferences = [] } = stored?.metadata ?? {};
  return !sameValue([labels, ownerReferences], [metadata.labels ?? {}, metadata.ownerReferences ?? []]);
}

/**
 * Refuses a change of labels or owners by a user without the right to approve, which decides who has to approve the revision. A new revision had
 * none before. What the request writes counts here as if the user could approve; of what editors wrote before, the rest does not count, and so
 * may be removed.
 */
export function refuseSelection(
  context: RequestContext,
  check: SelectionCheck,
  before: PolicySubject,
  written: WrittenMetadata,
): void {
  const record = withMetadata(before.record ?? emptyRecord(''), { ...written, byEditor: false });
  const why = check(before, { ...before, record });
  if (why === undefined) return;
  const { name } = before;
  throw new SluiceError(
    'Refused',
    `packagerevisions.porch.kpt.dev ${JSON.stringify(name)} is forbidden: ${why}; that needs the verb "update" on packagerevisions/approval, which User ${JSON.stringify(context.actor.name)} does not have; leave it as it is, or let a user who may approve write it`,
    { details: { name, group: 'porch.kpt.dev', kind: 'packagerevisions' } },
  );
}
