import { SluiceError } from '../../foundation/sluice-error.ts';
import { DamageError } from '../../git/errors.ts';
import type { GitRepository } from '../../git/git-repository.ts';
import type { RevisionIndex } from '../index/revision-index.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { readPackageFiles, type UpstreamRevision } from '../upstream/upstream-reader.ts';

/** Throws NotFound. */
export function expectRevision(index: Pick<RevisionIndex, 'get'>, name: string): PackageRevision {
  const revision = index.get(name);
  if (revision === undefined) throw new SluiceError('NotFound', `package revision "${name}" not found`);
  return revision;
}

/** By its tree: a package on the main branch stays as it is while the commit that it was seen in may go. */
export function treeOf({ tip, commit, path }: PackageRevision): string {
  return tip.tree ?? `${commit}:${path}`;
}

/** Names the revision in errors on damage. */
export async function ofRevision<Result>({ name }: PackageRevision, reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof DamageError ? new DamageError(`${name}: ${error.message}`, error) : error;
  }
}

/** A revision as the source of another one. */
export async function readAsUpstream(
  { git, url }: { readonly git: GitRepository; readonly url: string },
  revision: PackageRevision,
): Promise<UpstreamRevision> {
  const { commit, path, ref } = revision;
  return {
    revision,
    location: { repo: url, directory: path, ref: ref.replace(/^refs\/(?:heads|tags)\//, ''), commit },
    files: await readPackageFiles(git, treeOf(revision)),
  };
}
