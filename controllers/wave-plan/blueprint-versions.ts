import { creationSources, type GitVersion } from '../../src/package/model/revision/creation-tasks.ts';
import { isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { isVersionOf } from '../../src/package/store/upstream-references.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';

export type BlueprintStore = Pick<RevisionStore, 'find' | 'list' | 'repositoryOf'>;

/** Which revisions were cloned from a blueprint, or upgraded to it. */
export interface MadeFrom {
  /** By the upstream in the Kptfile, which users who edit the draft write. */
  byKptfile(revision: PackageRevision): boolean;
  /** By the task in its record, or in that of the revision that it is a copy of. */
  byRecord(revision: PackageRevision): boolean;
}

/** Finds what was made from the published revisions of a blueprint. */
export function madeFrom(
  { repository, package: path, revision: number }: NonNullable<WavePlan['spec']['selector']['blueprint']>,
  namespace: string,
  store: BlueprintStore,
): MadeFrom {
  const versions = store
    .list({ repository: `${namespace}/${repository}`, package: path })
    .filter((one) => isPublished(one) && (number === undefined || one.revision === number));
  const names = new Set(versions.map(({ name }) => name));
  const isVersion = (git: GitVersion) =>
    versions.some((version) => isVersionOf(git, version, store.repositoryOf(version).url));
  // One look for each version: the dependents of a blueprint are a whole fleet.
  const byKptfile = ({ kptfile }: PackageRevision) => {
    const { repo, directory = '', ref = '' } = kptfile?.upstream?.git ?? {};
    return repo !== undefined && isVersion({ repo, directory, ref });
  };
  /** Names of those of which it is known that neither they nor what they are copies of was made from it. */
  const others = new Set<string>();
  // A loop: a package has thousands of revisions, each a copy of the one before.
  const byRecord = (revision: PackageRevision): boolean => {
    const seen = new Set<string>();
    const open = [revision];
    for (let next = open.pop(); next !== undefined; next = open.pop())
      for (const source of creationSources(next)) {
        if ('upstream' in source ? names.has(source.upstream) : 'git' in source && isVersion(source.git)) return true;
        const original = 'copied' in source ? store.find(`${namespace}/${source.copied}`) : undefined;
        if (original === undefined || seen.has(original.name) || others.has(original.name)) continue;
        if (byKptfile(original)) return true;
        seen.add(original.name);
        open.push(original);
      }
    for (const name of seen) others.add(name);
    return false;
  };
  return { byKptfile, byRecord };
}
