import type { IndexChange } from '../index/state/index-delta.ts';
import type { PackageRepository } from './package-repository.ts';

type Compared = Pick<PackageRepository, 'index' | 'deployment' | 'url'>;

/** What changes for readers when a repository takes the place of another one of the same registration. */
export function differences(before: Compared, after: Compared): IndexChange[] {
  // Objects show these too.
  const showsSame = before.deployment === after.deployment && before.url === after.url;
  const changes: IndexChange[] = [];
  for (const old of before.index.all()) {
    const row = after.index.get(old.name);
    // One of the same name that was made in between is another one.
    const isSame = row !== undefined && row.uid === old.uid;
    if (isSame && showsSame && row.etag === old.etag) continue;
    if (isSame) changes.push({ before: old, after: row });
    else changes.push({ before: old, after: undefined });
    if (!isSame && row !== undefined) changes.push({ before: undefined, after: row });
  }
  for (const row of after.index.all())
    if (before.index.get(row.name) === undefined) changes.push({ before: undefined, after: row });
  return changes;
}

/** Computes what `differences` compares, which each row keeps. */
export function* etagsOf({ index }: Pick<Compared, 'index'>): Generator<void, void> {
  for (const row of index.all()) {
    void row.etag;
    yield;
  }
}
