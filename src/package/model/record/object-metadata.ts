import { sameValue } from '../../../resource/object/same-value.ts';
import { type RecordedOwner, recordedOwners } from './owners.ts';
import type { RevisionRecord } from './record.ts';

/** Object metadata in a record, as a request writes it. An absent field stays as it is. */
export interface WrittenMetadata
  extends Partial<
    Pick<RevisionRecord, 'labels' | 'annotations' | 'ownerReferences' | 'finalizers' | 'deletionTimestamp'>
  > {
  /** True if the writer may not approve. */
  readonly byEditor?: boolean | undefined;
}

type Selecting = Pick<RevisionRecord, 'labels' | 'ownerReferences' | 'unapproved'>;

/**
 * A record with the metadata of a request. Policies and plans let controllers approve what they select by labels and owners, at the time of the
 * write or later, so the record keeps which of these an editor wrote who may not approve. What stays as it was keeps its writer.
 */
export function withMetadata(
  before: RevisionRecord,
  { byEditor = false, ...metadata }: WrittenMetadata,
): RevisionRecord {
  const { unapproved: _before, ...after } = { ...before, ...metadata };
  const labels = Object.keys(after.labels ?? {}).filter((key) =>
    before.labels?.[key] === after.labels?.[key] ? isUnapproved(before, 'labels', key) : byEditor,
  );
  const known = recordedOwners(before);
  const owners = recordedOwners(after).flatMap((owner) => {
    const { uid = '' } = owner;
    const isKnown = known.some((one) => sameValue(one, owner));
    return (isKnown ? isUnapproved(before, 'owners', uid) : byEditor) ? [uid] : [];
  });
  if (labels.length + owners.length === 0) return after;
  return { ...after, unapproved: { labels, owners: [...new Set(owners)] } };
}

/** The labels and owners that count where they let a controller approve. */
export function approvedMetadata(record: Selecting | undefined): {
  readonly labels: Readonly<Record<string, string>>;
  readonly owners: readonly RecordedOwner[];
} {
  const { labels = {}, unapproved } = record ?? {};
  const owners = recordedOwners(record);
  if (record === undefined || unapproved === undefined) return { labels, owners };
  return {
    labels: Object.fromEntries(Object.entries(labels).filter(([key]) => !isUnapproved(record, 'labels', key))),
    owners: owners.filter(({ uid = '' }) => !isUnapproved(record, 'owners', uid)),
  };
}

function isUnapproved({ unapproved }: Selecting, of: 'labels' | 'owners', name: string): boolean {
  return unapproved?.[of].includes(name) === true;
}
