import { withoutMergeKeys } from './merge-key-comment.ts';
import { mergeKptfile } from './merge-kptfile.ts';
import { mergeResourceFiles } from './merge-resource-files.ts';
import { type Overwritten, OverwrittenFields } from './overwritten.ts';
import { isKptfilePath, type PackageFile, type PackageFiles, sameFile } from './package-files.ts';
import { ResourceReader } from './resource-reader.ts';

export interface MergedPackage {
  readonly files: PackageFiles;
  /** Files that changed upstream but keep local changes in some parts; sorted. */
  readonly keptLocal: readonly string[];
  /** Local changes of fields that are not in the result. */
  readonly overwritten: Overwritten;
  /** Files whose local changes are not in the result at all, since `texts` is `updated`; sorted. */
  readonly replaced: readonly string[];
}

export interface MergeOptions {
  /** Which side keeps a file without resources that both changed. Default: local. */
  readonly texts?: 'local' | 'updated';
}

/**
 * Merges what upstream changed from `original` to `updated` into `local`, resource by resource, with the semantics of
 * `kpt pkg update --strategy resource-merge`: resources are matched by what they are, wherever they are written; those added upstream
 * are added, those deleted upstream are deleted unless they were changed locally, those deleted locally stay deleted, and those
 * changed on both sides merge field by field. Files that hold no resources merge as a whole. Nothing that upstream left alone
 * changes a byte. Packages within the package are part of it. Above some MiB of
 * YAML that changed, the files that come last merge as a whole too.
 */
export function mergePackage(
  local: PackageFiles,
  original: PackageFiles,
  updated: PackageFiles,
  { texts = 'local' }: MergeOptions = {},
): MergedPackage {
  const result = new Map(local);
  const keptLocal = new Set<string>();
  const replaced: string[] = [];
  const overwritten = new OverwrittenFields();
  const put = (path: string, file: PackageFile | undefined) => {
    if (file === undefined) result.delete(path);
    else result.set(path, file);
  };
  const reader = new ResourceReader();
  const sides = { local, original, updated };
  const resourcePaths: string[] = [];
  for (const path of changedPaths(original, updated)) {
    const [mine, before, after] = [local.get(path), original.get(path), updated.get(path)];
    if (isKptfilePath(path)) {
      put(path, mergeKptfile(path, mine, before, after, overwritten));
    } else if (reader.hasResources(path, [mine, before, after])) {
      resourcePaths.push(path);
    } else if (sameText(path, mine, before)) {
      put(path, after);
    } else if (texts === 'updated' && !sameFile(mine, after)) {
      if (mine !== undefined) replaced.push(path);
      put(path, after);
    } else if (mine !== undefined && !sameFile(mine, after)) {
      keptLocal.add(path);
    }
  }
  for (const [path, file] of mergeResourceFiles(sides, resourcePaths, reader, { keptLocal, overwritten }))
    put(path, file);
  return { files: sorted(result), keptLocal: [...keptLocal].sort(), overwritten: overwritten.all(), replaced };
}

/** The marks that a clone leaves are no change by a user. */
function sameText(path: string, a: PackageFile | undefined, b: PackageFile | undefined): boolean {
  if (a === undefined || b === undefined || !/\.ya?ml$/.test(path)) return sameFile(a, b);
  return sameFile(a, b) || withoutMergeKeys(a.data) === withoutMergeKeys(b.data);
}

function changedPaths(original: PackageFiles, updated: PackageFiles): string[] {
  const all = new Set([...original.keys(), ...updated.keys()]);
  return [...all].filter((path) => !sameFile(original.get(path), updated.get(path))).sort();
}

function sorted(files: PackageFiles): PackageFiles {
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}
