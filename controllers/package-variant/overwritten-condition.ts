import { type Overwritten, overwrittenTexts } from '../../src/package/merge/overwritten.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { findCondition, type NewCondition } from '../../src/resource/object/condition.ts';
import type { Ensured } from './ensure-downstream.ts';

/** The condition and the event about changes of users that upstream has overwritten. */
export const OVERWRITTEN = 'LocalChangesOverwritten';
const MAX_MESSAGE_CHARACTERS = 4096;

export function overwrittenMessage({ name }: PackageRevision, overwritten: Overwritten): string {
  return `${name}: changed on both sides, and overwritten by upstream: ${overwrittenTexts(overwritten).join(', ')}`;
}

/** The condition after a merge, which stays until the revision that it names is decided; none if it stays or never was. */
export function overwrittenConditions(
  { status }: PackageVariant,
  { revision, isNew, overwritten }: Pick<Ensured, 'revision' | 'isNew' | 'overwritten'>,
): NewCondition[] {
  const before = overwrittenOf(status);
  const isOpen = before?.revision === revision.name && isNew !== true && !isPublished(revision);
  if (overwritten !== undefined) {
    const found = overwrittenMessage(revision, overwritten);
    const message = isOpen ? `${found}; before that, ${before.message}` : found;
    return [
      {
        type: OVERWRITTEN,
        status: 'True',
        reason: 'ChangedUpstream',
        message: message.slice(0, MAX_MESSAGE_CHARACTERS),
      },
    ];
  }
  if (before === undefined || isOpen) return [];
  const message = `no open revision has overwritten changes; ${before.revision} is decided`;
  return [{ type: OVERWRITTEN, status: 'False', reason: 'Decided', message }];
}

/** What the condition reports while it is True. */
export function overwrittenOf(
  status: PackageVariant['status'],
): { readonly revision: string; readonly message: string } | undefined {
  const { status: value, message = '' } = findCondition(status?.conditions, OVERWRITTEN) ?? {};
  const revision = message.slice(0, message.indexOf(':'));
  return value === 'True' ? { revision, message } : undefined;
}
