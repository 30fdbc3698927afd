import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Ref } from '../../git/git-repository.ts';
import { RECORD_REFS, type RepositoryLayout, recordPrefixIn } from '../model/identity/layout.ts';

/** The refs of the repository that the clone has, and the missing ones. */
export interface FoundRefs {
  readonly refs: readonly Ref[];
  readonly notes: readonly string[];
  /** The remote that a clone has its refs of; undefined for a repository that is no clone, and for a mirror. */
  readonly remote: string | undefined;
}

/** Where actions/checkout keeps the merge of a pull request, beside the branches of `origin`. */
const PULL_REQUEST = /^refs\/remotes\/pull\/\d+\//;

/**
 * Returns the refs of the repository in a clone: remote-tracking branches of `origin` or of the only remote; local branches are the
 * user's own work and are omitted.
 */
export function refsOfRepository(refs: readonly Ref[]): FoundRefs {
  const remotes = new Set(
    refs.flatMap(({ name }) => {
      if (PULL_REQUEST.test(name)) return 'origin';
      return name.startsWith('refs/remotes/') ? (name.split('/')[2] ?? '') : [];
    }),
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
  return { refs: found, notes, remote };
}

/** The error for a shallow clone: that a publication is on the main branch, and when it was made, is in the history that it lacks. */
export function shallowClone({ remote }: FoundRefs): SluiceError {
  const branches = remote === undefined ? 'refs/heads/*' : `refs/remotes/${remote}/*`;
  return new SluiceError(
    'InvalidInput',
    `this clone is shallow: without its history, what was published cannot be verified, and nothing was checked; git fetch --unshallow --tags ${remote ?? 'origin'} '+refs/heads/*:${branches}' '+refs/sluice/*:refs/sluice/*' brings the rest${CHECKOUT}`,
  );
}

/** The error for a clone that has packages, and no tag that could publish them. */
export function cloneWithoutTags(remote: string, packages: number): SluiceError {
  return new SluiceError(
    'InvalidInput',
    `this clone has no tags: whether the packages on the main branch (${packages}) were published is not known; git fetch --tags ${remote} '+refs/sluice/*:refs/sluice/*' brings them${CHECKOUT}; if the repository itself has no tags, verify a copy by git clone --mirror`,
  );
}

/** The error for a clone with publications from which the id of the repository does not follow. */
export function cloneWithoutId(remote: string): SluiceError {
  return new SluiceError(
    'InvalidInput',
    `this clone has no refs/sluice/repository, and its publications do not show which repository it is, so that they cannot be verified; git fetch ${remote} '+refs/sluice/*:refs/sluice/*' brings it; if the repository itself has none, verify a copy by git clone --mirror`,
  );
}

/** The error for a folder that would leave out all that is published. */
export function noSuchFolder({ directory, branch }: Pick<RepositoryLayout, 'directory' | 'branch'>): SluiceError {
  return new SluiceError(
    'InvalidInput',
    `there is no folder ${directory} on the branch ${branch}, and no revision of a package in it, so that nothing was checked; set --directory to the folder of the packages, as in spec.git.directory of the Repository`,
  );
}

/** The note for a folder that is not there yet, in a repository without packages. */
export function emptyFolder({ directory, branch }: Pick<RepositoryLayout, 'directory' | 'branch'>): string {
  return `there is no folder ${directory} on the branch ${branch} yet, and no package in the repository, so that no publication was checked`;
}

const CHECKOUT = ' (with actions/checkout, set "fetch-depth: 0" and "fetch-tags: true")';

/** Determines the location of records: under `refs/sluice/`, or under branches if a host refuses other names. */
export function layoutOf(refs: readonly Ref[], branch: string, directory: string): RepositoryLayout {
  const recordPrefix = recordPrefixIn(refs.map(({ name }) => name));
  return { branch, directory, recordPrefix: recordPrefix ?? RECORD_REFS };
}
