import { isSluiceError } from '../../foundation/sluice-error.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';

/**
 * The placeholder revisions of packages on the main branch that are the last of their packages after these were deleted. As in Porch, the
 * folder stays on that branch, and the package stays listed, until this revision is deleted too.
 */
export async function leftOnMain(
  { client, namespace }: Access,
  deleted: readonly Stored<PackageRevision>[],
): Promise<string[]> {
  const left = new Set<string>();
  for (const { spec } of deleted.filter(({ spec: { revision = 0 } }) => revision > 0)) {
    const { repository, packageName } = spec;
    const fieldSelector = `spec.repository=${repository},spec.packageName=${packageName}`;
    try {
      const { items } = await client.list(packageRevisionKind, { namespace, fieldSelector });
      if (items.some((item) => (item.spec.revision ?? 0) > 0)) continue;
      for (const item of items) if (item.spec.revision === -1) left.add(item.metadata.name);
    } catch (error) {
      // The deletion has succeeded. A user who may not list, or a server that fails now, gets no note about what is left.
      if (!isSluiceError(error)) throw error;
    }
  }
  return [...left];
}
