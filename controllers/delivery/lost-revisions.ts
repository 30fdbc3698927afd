import type { PresentFile } from '../../src/delivery/branch-view.ts';
import type { DesiredRevision } from '../../src/delivery/desired.ts';
import { readOwner } from '../../src/delivery/kustomization.ts';
import { packageKey } from '../../src/delivery/select-revisions.ts';
import { tombstoneRef } from '../../src/package/layout.ts';
import type { PackageRepository } from '../../src/package/package-repository.ts';

/**
 * Delivered revisions whose tag is gone although nobody deleted them through Sluice. Their folders stay as they are: taking them
 * away, or going back to a lower revision, would be the one way to change a cluster past every gate.
 */
export function lostRevisions(
  target: string,
  present: ReadonlyMap<string, PresentFile>,
  repositories: readonly PackageRepository[],
  chosen: readonly DesiredRevision[],
): DesiredRevision[] {
  const byName = new Map(repositories.map((repository) => [repository.repository, repository]));
  const numbers = new Map(chosen.map((revision) => [packageKey(revision), revision.revision]));
  const lost: DesiredRevision[] = [];
  for (const { data } of present.values()) {
    const owner = data === undefined ? undefined : readOwner(data);
    const repository = owner === undefined ? undefined : byName.get(owner.repository);
    if (owner?.revision === undefined || owner.target !== target || repository === undefined) continue;
    const isSuperseded = (numbers.get(packageKey(owner)) ?? 0) >= owner.revision;
    if (isSuperseded || isAccountedFor(repository, owner.package, owner.revision)) continue;
    const message = `v${owner.revision} is gone from repository ${owner.repository}, and nobody deleted it through Sluice; push its tag again, delete the folder by hand, or set allowOutOfBand: true on the target`;
    const { repository: name, package: path, revision } = owner;
    lost.push({
      ...{ repository: name, package: path, revision, sourceCommit: '', sourceTree: '', gates: [] },
      built: { refused: { reason: 'OutOfBandRemoval', message } },
    });
  }
  return lost;
}

/** True if the revision is still there, or was deleted in order. */
function isAccountedFor({ index, layout }: PackageRepository, path: string, revision: number): boolean {
  if (index.ofPackage(path).some((row) => row.revision === revision)) return true;
  return index.ref(tombstoneRef(layout, path, `v${revision}`)) !== undefined;
}
