import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageRevision } from '../../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../resource/object/object.ts';

type Revision = Stored<PackageRevision>;

/**
 * Returns the names of revisions to compare a revision with, the best first: `latest` is the latest published revision of the package,
 * `source` the one that it was created from (for a copy its source, for an upgrade the local one), else the published one before it;
 * any other text is a name. Empty for `source` if there is no earlier revision. NotFound if there is no published revision for
 * `latest`.
 */
export function diffBases(revision: Revision, revisionsOfPackage: readonly Revision[], word: string): string[] {
  if (word !== 'source' && word !== 'latest') return [word];
  const published = revisionsOfPackage
    .filter((other) => other.metadata.name !== revision.metadata.name && numberOf(other) > 0)
    .sort((a, b) => numberOf(b) - numberOf(a));
  if (word === 'latest') {
    const [latest] = published;
    if (latest !== undefined) return [latest.metadata.name];
    const { packageName } = revision.spec;
    throw new SluiceError('NotFound', `${packageName} has no other published revision to compare with`);
  }
  const number = numberOf(revision);
  const before = published.find((candidate) => number <= 0 || numberOf(candidate) < number);
  return [sourceOf(revision), before?.metadata.name].filter((name) => name !== undefined);
}

function sourceOf({ spec }: Revision): string | undefined {
  const [task] = spec.tasks ?? [];
  return (task?.edit?.sourceRef ?? task?.upgrade?.localPackageRevisionRef)?.name;
}

function numberOf({ spec }: Revision): number {
  return spec.revision ?? 0;
}
