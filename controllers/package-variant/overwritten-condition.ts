import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { findCondition, type NewCondition } from '../../src/resource/object/condition.ts';

/** The condition and the event about changes of users that a merge has overwritten. */
export const OVERWRITTEN = 'LocalChangesOverwritten';
const MAX_MESSAGE_CHARACTERS = 4096;
const SEPARATOR = '; before that, ';

/** The revision that a variant keeps up to date, and what merges in it overwrote. */
export interface OverwrittenFacts {
  readonly revision: PackageRevision;
  /** It was created now; an earlier one may have had its name. */
  readonly isNew?: true;
  /** See `readOverwritten`; none for a published revision. */
  readonly overwritten: readonly string[];
}

/** A message for each merge after the last one that the condition reports, the last merge first. */
export function newlyOverwritten(variant: PackageVariant, facts: OverwrittenFacts): string[] {
  const reported = openReport(variant, facts)?.message ?? '';
  const all = facts.overwritten.map((text) =>
    `${facts.revision.name}: changed on both sides, and overwritten ${text}`.slice(0, MAX_MESSAGE_CHARACTERS),
  );
  const known = all.findIndex((message) => reported.includes(message));
  return known === -1 ? all : all.slice(0, known);
}

/** The condition, which stays until the revision that it names is decided; none if it stays or never was. */
export function overwrittenConditions(variant: PackageVariant, facts: OverwrittenFacts): NewCondition[] {
  const before = overwrittenOf(variant.status);
  const open = openReport(variant, facts);
  const found = newlyOverwritten(variant, facts);
  if (found.length > 0) {
    const message = [...found, ...(open === undefined ? [] : [open.message])].join(SEPARATOR);
    return [
      {
        type: OVERWRITTEN,
        status: 'True',
        reason: 'ChangedUpstream',
        message: message.slice(0, MAX_MESSAGE_CHARACTERS),
      },
    ];
  }
  if (before === undefined || open !== undefined) return [];
  const message = `no open revision has overwritten changes; ${before.revision} is decided`;
  return [{ type: OVERWRITTEN, status: 'False', reason: 'Decided', message }];
}

/** What the condition reports about the revision, unless that is another one or decided. */
function openReport({ status }: PackageVariant, { revision, isNew }: Omit<OverwrittenFacts, 'overwritten'>) {
  const before = overwrittenOf(status);
  return before?.revision === revision.name && isNew !== true && !isPublished(revision) ? before : undefined;
}

/** What the condition reports while it is True. */
export function overwrittenOf(
  status: PackageVariant['status'],
): { readonly revision: string; readonly message: string } | undefined {
  const { status: value, message = '' } = findCondition(status?.conditions, OVERWRITTEN) ?? {};
  const revision = message.slice(0, message.indexOf(':'));
  return value === 'True' ? { revision, message } : undefined;
}
