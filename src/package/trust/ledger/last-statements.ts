import { DELETED, type StatementScope, type TrustLedger } from './trust-ledger.ts';

/** What a state of a repository must have to be as new as the ledger: a statement of this sequence or above. */
export interface LastStatement extends Omit<StatementScope, 'repository'> {
  readonly sequence: number;
}

/**
 * The last statement on each revision of a repository, by the ledger. Empty where the ledger need not be compared with a mirror; see
 * `TrustLedger.marksOf`.
 */
export function lastStatements(ledger: TrustLedger, repository: string): LastStatement[] {
  const found: LastStatement[] = [];
  for (const [{ package: path, workspace }, { sequence, digest }] of ledger.marksOf?.(repository) ?? []) {
    // Other scopes than those of revisions have a slash; see publication-mark.ts.
    if (workspace.includes('/') || digest === DELETED) continue;
    found.push({ package: path, workspace, sequence });
  }
  return found;
}

/** True if the ledger has statements on revisions of the repository that was last seen at an address. */
export function hasStatements(ledger: TrustLedger, address: string): boolean {
  const id = ledger.repositoryAt(address)?.id;
  return id !== undefined && lastStatements(ledger, id).length > 0;
}
