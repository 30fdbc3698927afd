import type { DeliveredPackage } from '../../../src/delivery/delivered/delivered-package.ts';
import { joinPath, normalizeDirectory } from '../../../src/delivery/path-rules.ts';
import { packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { GitRepository, Oid } from '../../../src/git/git-repository.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';

/**
 * Those of these packages whose folder another writer changed since the last delivery, by `packageKey`. A package that is refused, or whose
 * repository is away, keeps its folder, which is not compared with its manifests, since those are unknown: the folder is compared with the
 * one of the last delivery, before a later commit of Sluice contains the change.
 */
export async function changedWhileStaying(
  git: GitRepository,
  head: Oid | undefined,
  { spec, status }: DeliveryTarget,
  known: readonly DeliveredPackage[],
  packages: readonly { readonly repository: string; readonly package: string }[],
): Promise<ReadonlySet<string>> {
  const { lastCommit } = status ?? {};
  if (packages.length === 0 || head === undefined || lastCommit === undefined || lastCommit === head) return new Set();
  const names = new Set(packages.map(packageKey));
  const staying = known.filter((one) => names.has(packageKey(one)));
  const [last] = await git.statObjects([lastCommit]);
  // After a squash there is nothing to compare with, and any writer may have made what the folder has.
  if (last?.type !== 'commit') return new Set(staying.map(packageKey));
  const directory = normalizeDirectory(spec.git.directory);
  const folders = staying.map((one) => joinPath(directory, one.package));
  const [delivered, present] = await Promise.all(
    [lastCommit, head].map((commit) => git.statObjects(folders.map((folder) => `${commit}:${folder}`))),
  );
  // A folder that the last delivery did not have was not delivered there either, for example in a new directory of the target.
  const isChanged = (at: number) => delivered?.[at]?.oid !== present?.[at]?.oid;
  return new Set(staying.filter((_, at) => isChanged(at)).map(packageKey));
}
