import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import type { ObjectKey } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
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
 * none before.
 */
export function refuseSelection(
  context: RequestContext,
  check: SelectionCheck,
  before: PolicySubject,
  after: PolicySubject,
): void {
  const why = check(withoutMarks(before), withoutMarks(after));
  if (why === undefined) return;
  const { name } = after;
  throw new SluiceError(
    'Refused',
    `packagerevisions.porch.kpt.dev ${JSON.stringify(name)} is forbidden: ${why}; that needs the verb "update" on packagerevisions/approval, which User ${JSON.stringify(context.actor.name)} does not have; leave it as it is, or let a user who may approve write it`,
    { details: { name, group: 'porch.kpt.dev', kind: 'packagerevisions' } },
  );
}

/** Of what an editor wrote before, only a change is refused: the marks have it not count. */
function withoutMarks(subject: PolicySubject): PolicySubject {
  const { unapproved: _unapproved, ...record } = subject.record ?? emptyRecord('');
  const { key, name, namespace, path, kptfile } = subject;
  return { key, name, namespace, path, kptfile, record };
}
