import { contentOf, readKptfile } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { canonicalJson } from '../../foundation/text/canonical-json.ts';
import { withoutMergeKeys } from '../merge/merge-key-comment.ts';
import { mergeKptfile } from '../merge/merge-kptfile.ts';
import { type MergedPackage, mergePackage } from '../merge/merge-package.ts';
import { OverwrittenFields } from '../merge/overwritten.ts';
import { type PackageFile, type PackageFiles, sameFile } from '../merge/package-files.ts';
import { UPSTREAM_IDENTIFIER } from '../merge/upstream-identifier.ts';
import { KPTFILE_REQUEST_ANNOTATIONS } from '../model/revision/lifecycle-annotations.ts';
import type { UpdateStrategy } from './revision-source.ts';

/** The versions of a package in an upgrade. */
export interface PackageVersions {
  readonly local: PackageFiles;
  /** The previous upstream, and the new one. */
  readonly original: PackageFiles;
  readonly updated: PackageFiles;
}

/** Generated files of the package, which differ from upstream's without a change by a user. */
const GENERATED = 'package-context.yaml';

/**
 * Upgrades the local package to its new upstream. The Kptfile merges in every strategy (see mergeKptfile); all other files
 * - `resource-merge`: merges resource by resource (see mergePackage);
 * - `fast-forward`: replaces them by upstream's, and is Refused if there are local changes;
 * - `force-delete-replace`: replaces them by upstream's;
 * - `copy-merge`: files of upstream replace local ones, files that upstream deleted are removed, locally added ones stay.
 */
export function updatePackage(versions: PackageVersions, strategy: UpdateStrategy): MergedPackage {
  const { local, original, updated } = versions;
  switch (strategy) {
    case 'resource-merge':
      return mergePackage(local, original, updated);
    case 'fast-forward':
      refuseLocalChanges(versions);
      return withKptfile(versions, updated);
    case 'force-delete-replace':
      return withKptfile(versions, updated);
    case 'copy-merge': {
      const addedLocally = [...local].filter(([path]) => !original.has(path));
      return withKptfile(versions, new Map([...addedLocally, ...updated]));
    }
  }
}

function withKptfile({ local, original, updated }: PackageVersions, files: PackageFiles): MergedPackage {
  const lost = new OverwrittenFields();
  const [mine, before, after] = [local, original, updated].map((side) => side.get('Kptfile'));
  const kptfile = mergeKptfile('Kptfile', mine, before, after, lost);
  const result = new Map(files);
  if (kptfile !== undefined) result.set('Kptfile', kptfile);
  const sorted = new Map([...result].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { files: sorted, keptLocal: [], overwritten: lost.all(), replaced: [] };
}

function refuseLocalChanges({ local, original }: PackageVersions): void {
  const changed = [...new Set([...local.keys(), ...original.keys()])].sort().filter((path) => {
    const [mine, before] = [local.get(path), original.get(path)];
    if (path === 'Kptfile') return comparableKptfile(mine) !== comparableKptfile(before);
    if (path === GENERATED || sameFile(mine, before)) return false;
    return mine === undefined || before === undefined || withoutMergeKeys(mine.data) !== withoutMergeKeys(before.data);
  });
  if (changed.length === 0) return;
  const shown = changed.slice(0, 10).join(', ') + (changed.length > 10 ? ` and ${changed.length - 10} more` : '');
  throw new SluiceError(
    'Refused',
    `local package files have been modified: ${shown}; the strategy fast-forward overwrites no local changes; choose another strategy with --strategy`,
  );
}

/**
 * A Kptfile without what differs between a package and its upstream anyway: its name, its upstream, its status, and the annotations
 * that request automatic steps.
 */
function comparableKptfile(file: PackageFile | undefined): string {
  const result = file === undefined ? undefined : readKptfile(file.data);
  if (result?.ok !== true) return file?.data.toString('latin1') ?? '';
  const {
    upstream: _upstream,
    upstreamLock: _lock,
    metadata,
    ...rest
  } = contentOf(result.kptfile) as Record<string, unknown>;
  const { name: _name, namespace: _namespace, annotations, ...kept } = (metadata ?? {}) as Record<string, unknown>;
  const others = Object.entries((annotations ?? {}) as Record<string, unknown>).filter(
    ([key]) => key !== UPSTREAM_IDENTIFIER && !KPTFILE_REQUEST_ANNOTATIONS.includes(key),
  );
  return canonicalJson({ ...rest, metadata: { ...kept, annotations: Object.fromEntries(others) } });
}
