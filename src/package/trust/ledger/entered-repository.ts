import type { EnteredRepository, KnownRepository } from './trust-ledger.ts';

/** What `TrustLedger.enterRepository` returns, and what it writes, where the ledger knows `found`. */
export function enteredRepository(
  found: KnownRepository | undefined,
  repository: KnownRepository,
  movedFrom: string | undefined,
): { readonly entered: EnteredRepository; readonly put?: KnownRepository } {
  if (found === undefined) return { entered: 'new', put: repository };
  if (found.address === repository.address) return { entered: 'known' };
  if (found.address !== movedFrom) return { entered: 'elsewhere' };
  return { entered: 'known', put: { ...found, address: repository.address } };
}
