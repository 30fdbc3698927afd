import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { trimEndsOf } from '../../src/foundation/text/trim-characters.ts';
import { comparableAddress } from '../../src/git/open/repository-address.ts';
import { markResources } from '../../src/package/merge/mark-resources.ts';
import type { PackageFile, PackageFiles } from '../../src/package/merge/package-files.ts';
import { keptText, type OverwrittenBy } from '../../src/package/merge/still-overwritten.ts';
import { isPlaceholder, isPublished, type PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { ownNameOf, withContexts } from '../../src/package/plan/create/package-context.ts';
import { withUpstream } from '../../src/package/plan/create/upstream-kptfile.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { updatePackage } from '../../src/package/upstream/update-package.ts';
import { readPackageFiles } from '../../src/package/upstream/upstream-reader.ts';

export type UpstreamStore = Pick<RevisionStore, 'repositories' | 'repositoryOf' | 'list'>;

/** The upstream that a package was last merged with. */
export interface Base {
  readonly repository: PackageRepository;
  readonly commit: string;
  readonly directory: string;
  /** The published revision that it is, as far as there is one. */
  readonly revision: PackageRevision | undefined;
}

/**
 * Returns the upstream that a revision was last merged with, in a registered repository of its namespace: the probable one, or another. Throws
 * InvalidInput if its Kptfile names none.
 */
export function baseOf(
  store: UpstreamStore,
  { name, namespace, kptfile, problem }: PackageRevision,
  probable: PackageRepository,
): Base {
  if (kptfile === undefined)
    throw new SluiceError('InvalidInput', `the Kptfile of ${name} cannot be read: ${problem ?? 'there is none'}`);
  const { repo, directory = '', commit } = kptfile.upstreamLock?.git ?? {};
  if (repo === undefined || commit === undefined)
    throw new SluiceError(
      'InvalidInput',
      `the Kptfile of ${name} has no upstreamLock, so that its changes cannot be told from those of upstream; add one, or choose another spec.downstream`,
    );
  const address = comparableAddress(repo);
  const isIt = (one: PackageRepository) => one.namespace === namespace && comparableAddress(one.url) === address;
  // Comparing all addresses for each of many variants would grow with their product.
  const repository = isIt(probable) ? probable : store.repositories().find(isIt);
  if (repository === undefined)
    throw new SluiceError(
      'InvalidInput',
      `no registered repository has the address ${repo}, which the upstreamLock of ${name} names; register it ("sluice repo reg")`,
    );
  const folder = trimEndsOf(directory, '/');
  const { layout } = repository;
  const path = layout.directory === '' ? folder : folder.slice(layout.directory.length + 1);
  const revision = store
    .list({ repository: repository.id, package: path })
    .find((one) => one.commit === commit && one.path === folder && isPublished(one) && !isPlaceholder(one));
  return { repository, commit, directory: folder, revision };
}

/** True if the package was last merged with this upstream revision, or with the same content of the branch that it follows. */
export async function isBasedOn(
  { repository, commit, directory }: Base,
  upstream: PackageRevision,
  upstreamRepository: PackageRepository,
): Promise<boolean> {
  if (repository.id !== upstreamRepository.id || directory !== upstream.path) return false;
  if (commit === upstream.commit) return true;
  // The head of a branch moves with every package on it.
  if (!isPlaceholder(upstream)) return false;
  const [before] = await repository.git.statObjects([specificationOf(commit, directory)]);
  return before !== undefined && before.oid === upstream.tip.tree;
}

export interface MergedUpstream extends OverwrittenBy {
  /** The files that differ, null for removed ones. */
  readonly files: ReadonlyMap<string, Uint8Array | null>;
}

/** Merges what upstream changed since the base into the files of a package, as an upgrade does. */
export async function mergeUpstream(
  local: PackageFiles,
  base: Base,
  upstream: PackageRevision,
  { upstreamRepository, deployment }: { readonly upstreamRepository: PackageRepository; readonly deployment: boolean },
  { name, key }: PackageRevision,
): Promise<MergedUpstream> {
  const [original, updated] = await Promise.all([
    readPackageFiles(base.repository.git, specificationOf(base.commit, base.directory)),
    readPackageFiles(upstreamRepository.git, upstream.tip.tree ?? specificationOf(upstream.commit, upstream.path)),
  ]);
  const merged = updatePackage({ local, original, updated }, 'resource-merge');
  const { commit, path: directory } = upstream;
  const ref = upstream.ref.replace(/^refs\/(?:heads|tags)\//, '');
  let files = withUpstream(merged.files, { repo: upstreamRepository.url, directory, ref, commit }, name);
  if (deployment) files = withContexts(files, ownNameOf(key.package));
  files = markResources(files);
  const edits = new Map<string, Uint8Array | null>();
  for (const path of local.keys()) if (!files.has(path)) edits.set(path, null);
  for (const [path, file] of files) if (!isSame(local.get(path), file)) edits.set(path, file.data);
  const { keptLocal, overwritten } = merged;
  return { files: edits, by: 'upstream', overwritten, kept: keptText(keptLocal), local, original };
}

/** The files after some of them changed. */
export function withEdits(
  files: ReadonlyMap<string, Uint8Array>,
  edits: ReadonlyMap<string, Uint8Array | null>,
): ReadonlyMap<string, Uint8Array> {
  const result = new Map<string, Uint8Array>(files);
  for (const [path, data] of edits) {
    if (data === null) result.delete(path);
    else result.set(path, data);
  }
  return result;
}

function specificationOf(commit: string, directory: string): string {
  return directory === '' ? `${commit}^{tree}` : `${commit}:${directory}`;
}

function isSame(a: PackageFile | undefined, b: PackageFile): boolean {
  return a?.data.equals(b.data) === true;
}
