import { isPublished, type PackageRevision } from '../../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../../src/package/store/revision-store.ts';
import { CLUSTER_TYPE, isDependencyType, PROVIDER_SOURCE } from './dependency-object.ts';

/**
 * The reason why a Dependency that is True no longer is, at the moment of an approval: a locked provider has another published revision, or
 * none. Undefined if there is none.
 */
export function changedProvider(
  { record, namespace }: PackageRevision,
  store: Pick<RevisionStore, 'list'>,
): { readonly type: string; readonly message: string } | undefined {
  for (const { type, status, external = [] } of record?.verdicts ?? []) {
    if (!isDependencyType(type) || type === CLUSTER_TYPE || status !== 'True') continue;
    for (const { source, id, value } of external) {
      if (source !== PROVIDER_SOURCE || value === 'not ready') continue;
      const at = id.indexOf('/');
      const rows = store.list({ repository: `${namespace}/${id.slice(0, at)}`, package: id.slice(at + 1) });
      const latest = rows.find((row) => row.latest && isPublished(row));
      const present = latest === undefined ? 'not published' : `v${latest.revision} ${latest.commit}`;
      if (present !== value) {
        const now = latest === undefined ? 'is not published any more' : `is at v${latest.revision} now`;
        return { type, message: `${id} ${now}, and ${value.split(' ', 1)[0]} is locked; reject the proposal` };
      }
    }
  }
  return undefined;
}
