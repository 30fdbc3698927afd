import { DELETED, type Mark, type StatementScope, type TrustLedger } from './trust-ledger.ts';

/** What a state of a repository must have to be as new as the ledger: the statement with this digest, or one of this sequence or above. */
export type LastStatement = Omit<StatementScope, 'repository'> &
  ({ readonly digest: string } | { readonly sequence: number });

const ANNOUNCED_PREFIX = 'signed/';

/** Scope of the mark with the digests of statements that were signed and may not be written yet. */
export function announcedScope({ package: path, workspace }: Omit<StatementScope, 'repository'>) {
  return { package: path, workspace: ANNOUNCED_PREFIX + workspace };
}

/**
 * The last statement on each revision of a repository, by the ledger: those that this installation signed may not be written yet. Empty where
 * the ledger need not be compared with a mirror; see `TrustLedger.marksOf`.
 */
export function lastStatements(ledger: TrustLedger, repository: string): LastStatement[] {
  const found = new Map<string, { package: string; workspace: string; mark?: Mark; announced?: Mark }>();
  for (const [{ package: path, workspace }, mark] of ledger.marksOf?.(repository) ?? []) {
    const isAnnounced = workspace.startsWith(ANNOUNCED_PREFIX);
    const name = isAnnounced ? workspace.slice(ANNOUNCED_PREFIX.length) : workspace;
    // The scopes of no statement; see publication-mark.ts.
    if (name.includes('/')) continue;
    const key = JSON.stringify([path, name]);
    const one = found.get(key) ?? { package: path, workspace: name };
    found.set(key, { ...one, ...(isAnnounced ? { announced: mark } : { mark }) });
  }
  return [...found.values()].flatMap(({ mark, announced, ...scope }): LastStatement[] => {
    const [newest = ''] = announced?.digest.split(' ') ?? [];
    const isPending = announced !== undefined && announced.order > (mark?.order ?? -1) && newest !== mark?.digest;
    if (isPending) return [{ ...scope, digest: newest }];
    return mark === undefined || mark.digest === DELETED ? [] : [{ ...scope, sequence: mark.sequence }];
  });
}

/** True if the ledger has statements on revisions of the repository that was last seen at an address. */
export function hasStatements(ledger: TrustLedger, address: string): boolean {
  const id = ledger.repositoryAt(address)?.id;
  return id !== undefined && lastStatements(ledger, id).length > 0;
}
