import { basename, dirname, resolve } from 'node:path';
import { canonicalAddressNow } from '../../git/open/repository-address.ts';
import type { TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';

/** Returns why a repository with this id is not the one to be verified; undefined if it is. */
export type RepositoryCheck = (id: string) => string | undefined;

/**
 * The check that a repository is the expected one: all its refs can be replaced by those of another repository, whose statements are as
 * valid. `hostedFolder` has the repositories that Sluice keeps itself. `id` is what the caller expects; else the address, or that a ledger knows one repository only, identifies it.
 */
export function expectedRepository(
  id: string | undefined,
  ledger: Pick<TrustLedger, 'repositoryAt' | 'repositories'> | undefined,
  place: string,
  hostedFolder: string,
): RepositoryCheck {
  if (id !== undefined) return (found) => (found === id ? undefined : `the repository is ${found}, and not ${id}`);
  const known = ledger?.repositories() ?? [];
  const [only] = known;
  if (ledger === undefined || only === undefined) return () => undefined;
  const isHosted = canonicalAddressNow(dirname(place)) === canonicalAddressNow(resolve(hostedFolder));
  const here = ledger.repositoryAt(isHosted ? `sluice:///${basename(place)}` : canonicalAddressNow(place));
  const expected = here ?? (known.length === 1 ? only : undefined);
  if (expected === undefined)
    return () =>
      `the ledger knows ${known.length} repositories, and does not know which of them is at ${place}; name the one that is meant with --id (${known
        .slice(0, 10)
        .map((each) => `${each.id} is ${each.address}`)
        .join(', ')})`;
  return (found) =>
    found === expected.id
      ? undefined
      : `the repository is ${found}; expected is ${expected.id}, which the server has at ${expected.address}. If another one is meant, name it with --id`;
}
