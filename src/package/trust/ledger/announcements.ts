import { scopeText } from './marks.ts';
import type { Mark, StatementScope } from './trust-ledger.ts';

/**
 * A process may end between a write and its mark. So it announces each statement when it signs it: in the mark of a scope of its own, whose
 * digest lists the last statements, the newest first.
 */

/** Per revision: a write whose outcome is not known is planned again, and several processes announce. */
const MAX_ANNOUNCED = 8;
/** Workspaces have no slash, so that no statement has such a scope. */
const PREFIX = 'signed/';

export function announcedScope<Scope extends Omit<StatementScope, 'repository'>>(scope: Scope): Scope {
  return { ...scope, workspace: `${PREFIX}${scope.workspace}` };
}

/** The text of the scope in which statements on `scope` are announced. */
export function announcedText(scope: StatementScope): string {
  return scopeText(announcedScope(scope));
}

export function isAnnouncedScope({ workspace }: Pick<StatementScope, 'workspace'>): boolean {
  return workspace.startsWith(PREFIX);
}

/** The next mark of an announced scope, with one more statement. */
export function announce(before: Mark | undefined, digest: string): Pick<Mark, 'sequence' | 'digest' | 'proven'> {
  const digests = [digest, ...announcedIn(before)].slice(0, MAX_ANNOUNCED);
  return { sequence: (before?.sequence ?? 0) + 1, digest: digests.join(' '), proven: true };
}

/** Digests of statements, the newest first. */
export function announcedIn(mark: Pick<Mark, 'digest'> | undefined): readonly string[] {
  return mark === undefined ? [] : mark.digest.split(' ');
}
