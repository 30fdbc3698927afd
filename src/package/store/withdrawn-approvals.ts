import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Approval } from '../model/record/record.ts';
import { approverOfRecord } from '../model/record/withdrawn-approval.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { RevisionUpdate } from '../plan/update.ts';
import type { RevisionStoreOptions } from './revision-store-options.ts';

/**
 * An approval with the recorded approvals that do not count any more, since their users have lost the right. Of some the groups are not known, by
 * which the right is checked: those of controllers and of commands without an API, which grant no rights, and of earlier versions. They stay. A merge of the
 * Git host is checked before it.
 */
export async function withoutWithdrawn(
  { name, namespace, record }: PackageRevision,
  mayStillApprove: NonNullable<RevisionStoreOptions['mayStillApprove']>,
  update: RevisionUpdate,
  { actor, signal }: RequestContext,
): Promise<RevisionUpdate> {
  if (update.merged !== undefined) return update;
  const isWithdrawn = async (approval: Approval) => {
    const { subject, allGroups, namespace: given = namespace } = approval;
    if (allGroups === undefined || subject === actor.name) return false;
    return !(await mayStillApprove(approverOfRecord(approval), { namespace: given, name }, signal));
  };
  const approvals = record?.approvals ?? [];
  const checked = await Promise.all(approvals.map(isWithdrawn));
  const withdrawn = approvals.filter((_approval, index) => checked[index]);
  return withdrawn.length === 0 ? update : { ...update, withdrawn };
}
