import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { RequestGroup } from '../../src/resource/object/request-group.ts';

/** Approves revisions as one wave does. */
export async function approveTogether(
  store: RevisionStore,
  names: readonly string[],
  context: RequestContext,
): Promise<PromiseSettledResult<PackageRevision | undefined>[]> {
  const { members } = new RequestGroup(names.length);
  const approve = async (together: (typeof members)[number], name: string) => {
    try {
      return await store.update(name, { action: 'approve' }, { ...context, together });
    } finally {
      together.end();
    }
  };
  return Promise.allSettled(members.map((member, at) => approve(member, names[at] ?? '')));
}
