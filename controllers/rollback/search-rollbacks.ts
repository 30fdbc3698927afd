import type { DueRollback } from '../../src/delivery/rollback/decide-rollbacks.ts';
import {
  type EarlierRevision,
  EarlierRevisionSearch,
  type NoRollback,
} from '../../src/delivery/rollback/earlier-revision.ts';
import type { GitRepository, Oid } from '../../src/git/git-repository.ts';
import { type LastDelivery, searchDeliveries } from '../delivery/delivery-history.ts';
import type { SearchFacts } from './impossible-rollbacks.ts';

/** A package that is due for a rollback. */
export interface RollbackSearch {
  readonly due: DueRollback;
  /** From the root of the repository of the target. */
  readonly folder: string;
  readonly facts: SearchFacts;
}

export type FoundRollback = RollbackSearch & { readonly result: EarlierRevision | NoRollback };

/** The revision that each package goes back to, in the order of `searches`. `target` is the name that the commits have. */
export async function searchRollbacks(
  git: Pick<GitRepository, 'readCommit' | 'statObjects'>,
  head: Oid,
  target: string,
  searches: readonly RollbackSearch[],
  signal: AbortSignal,
): Promise<FoundRollback[]> {
  const results = new Map<RollbackSearch, EarlierRevision | NoRollback>();
  const open = searches.map((search) => {
    const { due, folder, facts } = search;
    const earlier = new EarlierRevisionSearch(due, (revision, sourceCommit) => counts(facts, revision, sourceCommit));
    const add = (delivery: LastDelivery): boolean => {
      const result = earlier.add(delivery);
      if (result !== undefined) results.set(search, result);
      return result !== undefined;
    };
    return { search, earlier, name: due.delivered, folder, add };
  });
  await searchDeliveries(git, head, target, open, signal);
  return open.map(({ search, earlier }) => ({ ...search, result: results.get(search) ?? earlier.end() }));
}

function counts({ rows, isOutOfBandAllowed }: SearchFacts, revision: number, sourceCommit: string): boolean {
  return rows.some(
    (row) =>
      row.revision === revision && row.commit === sourceCommit && (isOutOfBandAllowed || row.outOfBand === undefined),
  );
}
