import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import { findCycle } from '../../../../src/foundation/find-cycle.ts';
import { isSluiceError } from '../../../../src/foundation/sluice-error.ts';
import {
  isPublished,
  type PackageRevision,
  revisionId,
} from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { CLUSTER_TYPE, isDependency, isDependencyType, lockOf, namedPackages } from './dependency-object.ts';
import { packageId } from './select-providers.ts';

/**
 * The packages of a cycle that the package of `consumer` is part of, beginning and ending with it; undefined if there is none. The edges of a
 * draft are in its verdicts, which name what it has locked and what it waits for; those of a publication are what it has locked.
 */
export function findDependencyCycle(
  consumer: PackageRevision,
  providers: readonly string[],
  store: Pick<RevisionStore, 'list' | 'content'>,
): Promise<readonly string[] | undefined> {
  const own = packageId(consumer);
  return findCycle(own, (id) => (id === own ? providers : providersOf(id, consumer.namespace, store)));
}

async function providersOf(
  id: string,
  namespace: string,
  store: Pick<RevisionStore, 'list' | 'content'>,
): Promise<string[]> {
  const at = id.indexOf('/');
  const rows = store.list({ repository: `${namespace}/${id.slice(0, at)}`, package: id.slice(at + 1) });
  const found: string[] = [];
  for (const row of rows) {
    if (isPublished(row)) found.push(...(row.latest ? await lockedBy(row, store) : []));
    else
      for (const { type, external } of row.record?.verdicts ?? [])
        if (isDependencyType(type)) found.push(...namedPackages(external));
  }
  return found;
}

/** The packages that a publication has locked. Only a package with a condition of a Dependency is read. */
async function lockedBy(row: PackageRevision, store: Pick<RevisionStore, 'content'>): Promise<string[]> {
  if (!hasDependencies(row)) return [];
  try {
    const content = await store.content(revisionId(row));
    return content
      .objects()
      .filter(isDependency)
      .flatMap((object) => lockOf(object).map((one) => `${one.repository}/${one.package}`));
  } catch (error) {
    // Deleted meanwhile, which wakes its consumers.
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'LimitExceeded')) return [];
    throw error;
  }
}

/** True for a package with the condition of a Dependency. */
export function hasDependencies({ kptfile }: PackageRevision): boolean {
  return (
    kptfile !== undefined &&
    [...conditionsOf(kptfile).keys()].some((type) => type !== CLUSTER_TYPE && isDependencyType(type))
  );
}
