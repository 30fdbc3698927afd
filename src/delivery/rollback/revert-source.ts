import { SluiceError } from '../../foundation/sluice-error.ts';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';

export type Revision = Stored<PackageRevision>;

/** What a revert copies, and what the caller should know about it. */
export interface RevertSource {
  readonly revision: Revision;
  /** False if no delivery of an earlier revision that did not fail is recorded, so that it is the highest one of these. */
  readonly isDelivered: boolean;
  readonly notes: readonly string[];
}

/**
 * The revision whose content replaces a reverted one: the one that a target went back to, else the highest earlier one that was delivered and did
 * not fail on a target. Where no delivery of such a revision is recorded, the highest earlier one that did not fail. Undefined if none precedes
 * it. `revisions` are those of the package, the lowest first; `delivered` is the number of one whose delivery is recorded elsewhere.
 */
export function revertSource(
  reverted: Revision,
  revisions: readonly Revision[],
  targets: readonly DeliveryTarget[],
  delivered?: number,
): RevertSource | undefined {
  const earlier = revisions.filter((one) => isPublished(one) && numberOf(one) < numberOf(reverted));
  const failedOn = failuresOf(reverted, targets);
  const sound = earlier.filter((one) => !failedOn.has(numberOf(one)));
  const isOfPackage = isAbout(reverted);
  const rollbacks = targets.flatMap(({ status }) => status?.rollbacks ?? []).filter(isOfPackage);
  const returned = new Set(rollbacks.filter(({ from }) => from === numberOf(reverted)).map(({ to }) => to));
  const changes = targets.flatMap(({ status }) => status?.history?.changes ?? []).filter(isOfPackage);
  const recorded = new Set([delivered, ...rollbacks.map(({ to }) => to), ...changes.map((one) => one.revision)]);
  const lastOf = (numbers: ReadonlySet<number | undefined>) => sound.findLast((one) => numbers.has(numberOf(one)));
  const goal = lastOf(returned);
  const known = goal ?? lastOf(recorded);
  const revision = known ?? sound.at(-1) ?? earlier.at(-1);
  if (revision === undefined) return undefined;
  const skipped = earlier
    .filter((one) => numberOf(one) > numberOf(revision))
    .flatMap(
      (one) => failureText(one, failedOn) ?? (goal === undefined && known !== undefined ? undeliveredText(one) : []),
    );
  const notes = skipped.map((text) => `skipped ${text}`);
  const own = failureText(revision, failedOn);
  if (own !== undefined) notes.push(`every earlier revision failed on a target: ${own}; choose another one with --to`);
  return { revision, isDelivered: known !== undefined, notes };
}

/** A published revision of the package that the caller names: its full name, or its number such as v3. */
export function namedSource(
  name: string,
  reverted: Revision,
  revisions: readonly Revision[],
  targets: readonly DeliveryTarget[],
): Pick<RevertSource, 'revision' | 'notes'> {
  const found = revisions.find(
    (one) => isPublished(one) && (one.metadata.name === name || `v${numberOf(one)}` === name),
  );
  if (found === undefined || numberOf(found) === numberOf(reverted)) {
    const known = revisions.filter((one) => isPublished(one) && one !== reverted).map(({ metadata }) => metadata.name);
    const hint = known.length === 0 ? 'it has no other one' : `use one of: ${known.slice(-5).join(', ')}`;
    throw new SluiceError(
      'NotFound',
      `cannot revert ${reverted.metadata.name} to ${name}: that is no other published revision of the package; ${hint}`,
    );
  }
  const own = failureText(found, failuresOf(reverted, targets));
  return { revision: found, notes: own === undefined ? [] : [own] };
}

export function isPublished({ spec: { lifecycle, revision = 0 } }: Revision): boolean {
  return (lifecycle === 'Published' || lifecycle === 'DeletionProposed') && revision > 0;
}

export function numberOf({ spec }: Revision): number {
  return spec.revision ?? 0;
}

function isAbout({ spec }: Revision) {
  return (one: { readonly repository: string; readonly package: string }) =>
    one.repository === spec.repository && one.package === spec.packageName;
}

/** The targets that went back from a revision of the package, by its number. */
function failuresOf(reverted: Revision, targets: readonly DeliveryTarget[]): ReadonlyMap<number, readonly string[]> {
  const isOfPackage = isAbout(reverted);
  const failures = new Map<number, Set<string>>();
  for (const { metadata, status } of targets) {
    const rolledBack = (status?.rollbacks ?? []).map((one) => ({ ...one, revision: one.from }));
    for (const one of [...rolledBack, ...(status?.failedRevisions ?? [])])
      if (isOfPackage(one)) failures.set(one.revision, (failures.get(one.revision) ?? new Set()).add(metadata.name));
  }
  return new Map([...failures].map(([revision, names]) => [revision, [...names].sort()]));
}

function failureText(revision: Revision, failedOn: ReadonlyMap<number, readonly string[]>): string | undefined {
  const names = failedOn.get(numberOf(revision));
  return names === undefined ? undefined : `v${numberOf(revision)}, which failed on ${names.join(', ')}`;
}

function undeliveredText(revision: Revision): string {
  return `v${numberOf(revision)}, whose delivery is not recorded`;
}
