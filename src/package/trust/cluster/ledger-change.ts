import type { StatementScope } from '../ledger/trust-ledger.ts';

/** What waits to be written to one object. */
export type LedgerChange =
  | { readonly scopes: Map<string, StatementScope> }
  | { readonly key: string }
  | { readonly repository: string }
  | { readonly shown: string };

/** True for a change of a repository, and for one of keys, which concern all of them. */
export function concerns(change: LedgerChange, repository: string | undefined): boolean {
  if (repository === undefined || 'key' in change) return true;
  if ('scopes' in change) return [...change.scopes.values()].some((scope) => scope.repository === repository);
  return ('repository' in change ? change.repository : change.shown) === repository;
}
