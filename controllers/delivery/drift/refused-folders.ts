import type { DeliveredPackage } from '../../../src/delivery/delivered/delivered-package.ts';
import { joinPath, normalizeDirectory } from '../../../src/delivery/path-rules.ts';
import { type PackageRefusal, packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery-target.ts';

/**
 * The refused packages whose folder another writer changed since the last delivery, by `packageKey`. A refused package keeps its folder, which
 * is not compared with its manifests, since those are unknown: the folder is compared with the one of the last delivery, before a later
 * commit of Sluice contains the change.
 */
export async function changedWhileRefused(
  git: GitRepository,
  head: Oid | undefined,
  { spec, status }: DeliveryTarget,
  known: readonly DeliveredPackage[],
  refused: readonly PackageRefusal[],
): Promise<ReadonlySet<string>> {
  const { lastCommit } = status ?? {};
  if (refused.length === 0 || head === undefined || lastCommit === undefined || lastCommit === head) return new Set();
  const isRefused = new Set(refused.map(packageKey));
  const staying = known.filter((one) => isRefused.has(packageKey(one)));
  const directory = normalizeDirectory(spec.git.directory);
  const folders = staying.map((one) => joinPath(directory, one.package));
  const [delivered, present] = await Promise.all(
    [lastCommit, head].map((commit) => git.statObjects(folders.map((folder) => `${commit}:${folder}`))),
  );
  // Without the folder, or the commit, there is nothing to compare with.
  const isChanged = (at: number) => delivered?.[at] !== undefined && delivered[at].oid !== present?.[at]?.oid;
  return new Set(staying.filter((_, at) => isChanged(at)).map(packageKey));
}
