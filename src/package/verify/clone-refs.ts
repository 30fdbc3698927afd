import type { Ref } from '../../git/git-repository.ts';
import { RECORD_REFS, type RepositoryLayout, recordPrefixIn } from '../model/identity/layout.ts';

/** The refs of the repository that the clone has, and the missing ones. */
export interface FoundRefs {
  readonly refs: readonly Ref[];
  readonly notes: readonly string[];
  readonly isClone: boolean;
}

/**
 * Returns the refs of the repository in a clone: remote-tracking branches of `origin` or of the only remote; local branches are the
 * user's own work and are omitted.
 */
export function refsOfRepository(refs: readonly Ref[]): FoundRefs {
  const remotes = new Set(
    refs.flatMap(({ name }) => (name.startsWith('refs/remotes/') ? (name.split('/')[2] ?? '') : [])),
  );
  const remote = remotes.has('origin') ? 'origin' : [...remotes][0];
  const notes: string[] = [];
  let found = refs;
  if (remote !== undefined) {
    const prefix = `refs/remotes/${remote}/`;
    const others = refs.filter(({ name }) => !name.startsWith('refs/heads/') && !name.startsWith('refs/remotes/'));
    const branches = refs.flatMap(({ name, oid }) =>
      name.startsWith(prefix) ? { name: `refs/heads/${name.slice(prefix.length)}`, oid } : [],
    );
    found = [...branches, ...others];
    if (!found.some(({ name }) => name.startsWith('refs/sluice/')))
      notes.push(
        `this clone has no refs/sluice/: records, deletions, adoptions and the id are not here; git fetch ${remote} '+refs/sluice/*:refs/sluice/*' brings them`,
      );
    notes.push(
      `tags and remote-tracking branches are as old as the last fetch; git fetch --tags --prune ${remote} brings new ones`,
    );
  }
  return { refs: found, notes, isClone: remote !== undefined };
}

/** Determines the location of records: under `refs/sluice/`, or under branches if a host refuses other names. */
export function layoutOf(refs: readonly Ref[], branch: string, directory: string): RepositoryLayout {
  const recordPrefix = recordPrefixIn(refs.map(({ name }) => name));
  return { branch, directory, recordPrefix: recordPrefix ?? RECORD_REFS };
}
