import { mapLimited } from '../../foundation/concurrency/map-limited.ts';
import { messageOf, unlessMissing } from '../../foundation/sluice-error.ts';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../resource/kinds/porch/package-revision-resources.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { isExpected } from '../output/report-error.ts';
import { compareContents, compareRevisions, type RevisionDifference } from './compare-revisions.ts';
import { type ContentsView, contentsView } from './contents-digest.ts';
import { withoutPasswords } from './plan-repository.ts';
import { revisionView } from './revision-view.ts';

/** Package revisions whose files are read at the same time. */
const MAX_READS = 4;

/** One of both systems, with its package revisions of one repository. */
export interface Side {
  readonly access: Access;
  readonly revisions: readonly Stored<PackageRevision>[];
}

export interface CompareRepositoryOptions {
  readonly namespace: string;
  readonly contents: boolean;
  readonly hasDatabase: boolean;
}

/** The differences between the package revisions of one repository, and between their files. */
export async function compareRepository(
  porch: Side,
  sluice: Side,
  { namespace, contents, hasDatabase }: CompareRepositoryOptions,
): Promise<readonly RevisionDifference[]> {
  const [theirs, ours] = [porch, sluice].map(({ revisions }) => revisions.map(revisionView)) as [
    ReturnType<typeof revisionView>[],
    ReturnType<typeof revisionView>[],
  ];
  const found = compareRevisions(theirs, ours, { hasDatabase });
  if (!contents) return found;
  const known = new Set(ours.map(({ name }) => name));
  const both = theirs.map(({ name }) => name).filter((name) => known.has(name));
  const compared = await mapLimited(both, MAX_READS, async (name) => {
    const [one, other] = [await contentsOf(porch, namespace, name), await contentsOf(sluice, namespace, name)];
    return compareContents(name, one, other);
  });
  return [...found, ...compared.filter((difference) => difference !== undefined)];
}

/**
 * Undefined if the package revision was deleted meanwhile, and a message if it cannot be read: one that is broken must not hide the others.
 * Only digests are kept, since packages can be large.
 */
async function contentsOf(
  { access: { client } }: Side,
  namespace: string,
  name: string,
): Promise<ContentsView | string | undefined> {
  try {
    const object = await unlessMissing(client.get(packageRevisionResourcesKind, { namespace, name }));
    return object === undefined ? undefined : contentsView(object.spec.resources, object.spec.binaryResources);
  } catch (error) {
    if (!isExpected(error)) throw error;
    return withoutPasswords(messageOf(error));
  }
}
