import { createHash } from 'node:crypto';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { WavePlan } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { DEFAULT_NAMESPACE } from '../../src/resource/object/object.ts';
import type { Candidate } from '../../src/rollout/wave/observation.ts';
import { orderKey } from '../../src/rollout/wave/order-key.ts';
import { targetId } from './plan-records.ts';
import type { Selection } from './select-revisions.ts';

/** The Proposed revisions that a plan selects, one of each package: the last one. `salt` is that of their order. */
export function observeCandidates(
  { metadata }: WavePlan,
  selection: Selection,
  store: Pick<RevisionStore, 'list'>,
  salt: string,
): Map<string, Candidate> {
  const { namespace = DEFAULT_NAMESPACE } = metadata;
  const last = new Map<string, PackageRevision>();
  for (const revision of store.list({ lifecycle: 'Proposed' })) {
    if (revision.namespace !== namespace || !selection.isSelected(revision)) continue;
    const id = targetId(revision.key);
    const other = last.get(id);
    if (other === undefined || isLater(revision, other)) last.set(id, revision);
  }
  return new Map(
    [...last].map(([id, revision]) => {
      const { waves: selectedBy, label } = selection.placeOf(revision);
      const { name, commit } = revision;
      return [id, { id, key: orderKey(id, salt, label), revision: name, commit, selectedBy }];
    }),
  );
}

function isLater(one: PackageRevision, other: PackageRevision): boolean {
  const [a, b] = [one, other].map(({ record }) => record?.createdAt ?? '');
  return a === b ? one.name > other.name : (a ?? '') > (b ?? '');
}

/** A part of the name of an object that differs for different texts. */
export function shortDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 10);
}
