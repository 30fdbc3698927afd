import type { Oid } from '../../src/git/git-repository.ts';
import { provesDeletion } from '../../src/package/index/trust/deletion-proof.ts';
import { packagePath, tombstoneRef } from '../../src/package/model/identity/layout.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';

/** True if a published revision without a tag was deleted through Sluice; see `provesDeletion`. */
export async function wasDeleted(
  { git, index, layout, trust }: Pick<PackageRepository, 'git' | 'index' | 'layout' | 'trust'>,
  revision: { readonly package: string; readonly revision: number },
  commit: Oid | undefined,
): Promise<boolean> {
  const version = `v${revision.revision}`;
  const ref = tombstoneRef(layout, revision.package, version);
  const oid = index.ref(ref);
  if (oid === undefined) return false;
  const path = packagePath(layout, revision.package);
  return provesDeletion({ git, trust }, { oid, path, version, isAdopted: index.isAdopted(ref, oid) }, commit);
}
