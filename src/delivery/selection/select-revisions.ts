import type { Rollback, TargetSettings } from '../delivery-target.ts';
import { compareText } from '../path-rules.ts';
import type { DeliveryRefusal } from '../refusal.ts';

/** The fields of a published revision that selection uses. */
export interface PublishedRevision {
  readonly repository: string;
  /** Path of the package in its repository. */
  readonly package: string;
  readonly revision: number;
  /** The commit of the publication, if the caller knows it. */
  readonly commit?: string;
  /** Reason why the publication does not count, if it does not. */
  readonly outOfBand?: { readonly reason: string; readonly message: string };
}

export interface PackageRefusal extends DeliveryRefusal {
  readonly repository: string;
  readonly package: string;
  readonly revision?: number;
}

export type SelectionSettings = Pick<TargetSettings, 'pins' | 'rollbacks' | 'allowOutOfBand'>;

/** The last delivery of a package. */
export interface DeliveredRevision {
  readonly repository: string;
  readonly package: string;
  /** Undefined for a folder that an early version wrote. */
  readonly revision?: number;
  /** The revision in the status of the target, if it is higher: the branch went back, for example to a backup. */
  readonly reported?: number;
  /** False if the branch has no folder of the package any more. */
  readonly hasFolder: boolean;
}

export interface RevisionSelection<Revision> {
  /** One revision for each package, by repository and package. */
  readonly chosen: readonly Revision[];
  /** Packages whose folder stays exactly as it is, and why; a package without a folder gets none. */
  readonly blocked: readonly PackageRefusal[];
}

export interface PackageFacts<Revision> {
  /** Undefined if the answer depends on a record that does not count. */
  isSelected(revision: Revision): boolean | undefined;
  /** True if a missing revision was deleted through Sluice. Called for delivered revisions only. */
  isDeleted(revision: DeliveredRevision & { readonly revision: number }): boolean;
}

export interface SelectionFacts<Revision> extends PackageFacts<Revision> {
  /** By `packageKey`; only packages that the target may select by their name, from repositories that can be read. */
  readonly delivered: ReadonlyMap<string, DeliveredRevision>;
}

/**
 * Selects the published revisions that a target delivers: the pinned one of each selected package, else the one that the target went back
 * to, else the highest.
 *
 * A target never returns to a lower revision by itself. If the highest revision does not count (it is out of band, lost its trust, or
 * is not verified yet), or the delivered one vanished without a deletion through Sluice, the package is blocked: its folder stays as
 * it is. Only a deletion, a pin, a rollback, a change of the selector, or `allowOutOfBand` leads to a lower revision.
 */
export function selectRevisions<Revision extends PublishedRevision>(
  target: SelectionSettings,
  revisions: Iterable<Revision>,
  facts: SelectionFacts<Revision>,
): RevisionSelection<Revision> {
  const byPackage: Map<string, Revision[]> = Map.groupBy(revisions, packageKey);
  for (const key of facts.delivered.keys()) if (!byPackage.has(key)) byPackage.set(key, []);
  const chosen: Revision[] = [];
  const blocked: PackageRefusal[] = [];
  for (const [key, list] of [...byPackage].sort(([a], [b]) => compareText(a, b))) {
    list.sort((a, b) => b.revision - a.revision);
    const choice = selectRevision(target, list, facts.delivered.get(key), facts);
    if (choice === undefined) continue;
    if ('refused' in choice) blocked.push(choice.refused);
    else chosen.push(choice.revision);
  }
  return { chosen, blocked };
}

/**
 * Selects the revision of one package. `list` has its published revisions, the highest first. Undefined if the package is not selected, or
 * was deleted.
 */
export function selectRevision<Revision extends PublishedRevision>(
  target: SelectionSettings,
  list: readonly Revision[],
  delivered: DeliveredRevision | undefined,
  facts: PackageFacts<Revision>,
): { readonly revision: Revision } | { readonly refused: PackageRefusal } | undefined {
  const [highest] = list;
  const of = highest ?? delivered;
  if (of === undefined) return undefined;
  const { repository, package: path } = of;
  const refuse = (reason: DeliveryRefusal['reason'], message: string, revision?: number) => ({
    refused: { repository, package: path, ...(revision === undefined ? {} : { revision }), reason, message },
  });

  const pin = target.pins?.find((one) => one.repository === repository && one.package === path)?.revision;
  const pinned = pin === undefined ? undefined : list.find(({ revision }) => revision === pin);
  const rollback = pin === undefined && highest !== undefined ? rollbackOf(target, highest) : undefined;
  if (pinned === undefined && !target.allowOutOfBand && isLost(highest, delivered, facts)) {
    const revision = lastOf(delivered);
    const message = `v${revision} is missing in repository ${repository}, and it was not deleted through Sluice; push its tag again, delete the folder by hand, or set allowOutOfBand: true on the target`;
    return refuse('OutOfBandRemoval', message, revision);
  }
  if (highest === undefined) return undefined;

  const back = rollback && list.find(({ revision }) => revision === rollback.to);
  const first = pin !== undefined ? pinned : rollback !== undefined ? back : highest;
  if (first === undefined) {
    if (facts.isSelected(highest) === false) return undefined;
    if (rollback !== undefined) {
      const lost = `the target went back from v${rollback.from}, which failed, to v${rollback.to}, which is no published revision any more; ${stateOf(delivered)}; publish another revision, or run "sluice target resume" to deliver v${rollback.from}`;
      return refuse('PinnedRevisionMissing', lost);
    }
    const message = `v${pin} is pinned, but the package has no such published revision; highest is v${highest.revision}`;
    return refuse('PinnedRevisionMissing', message);
  }
  const hasFolder = delivered?.hasFolder === true;
  if (first.outOfBand === undefined || target.allowOutOfBand) {
    const isSelected = facts.isSelected(first);
    if (isSelected === true) return { revision: first };
    if (isSelected === false || !hasFolder) return undefined;
    const message = `the record of v${first.revision} with its labels does not count any more, so it is unknown whether the target selects it; ${stateOf(delivered)}`;
    return refuse('TrustLost', message, first.revision);
  }

  // A publication that does not count must not remove the package from the target either, by other labels.
  const trusted = list.find(({ outOfBand }) => outOfBand === undefined);
  const isSelected = hasFolder
    ? list.some((revision) => facts.isSelected(revision) !== false)
    : facts.isSelected(trusted ?? first) === true;
  if (!isSelected) return undefined;
  const { reason, message } = first.outOfBand;
  const name = `v${first.revision}`;
  if (reason === 'Unverified') {
    return refuse('Unverified', `${name} waits to be verified: ${message}; ${stateOf(delivered)}`, first.revision);
  }
  if (hasFolder && delivered.revision === first.revision) {
    const advice = 'restore the trust in it or publish another revision';
    const lost = `${name} was delivered and does not count any more (${reason}: ${message}); ${stateOf(delivered)}; ${advice}`;
    return refuse('TrustLost', lost, first.revision);
  }
  const past = `${name} was published out of band (${reason}: ${message}), and the target does not allow that; ${stateOf(delivered)}`;
  return refuse('OutOfBand', past, first.revision);
}

/** The rollback of a package; undefined if there is none, or another revision was published after it. */
function rollbackOf({ rollbacks }: SelectionSettings, highest: PublishedRevision): Rollback | undefined {
  const found = rollbacks?.find((one) => one.repository === highest.repository && one.package === highest.package);
  return found !== undefined && isAbout(found, highest) ? found : undefined;
}

/** True if a published revision is the one that failed: a number can be used again after a deletion. */
function isAbout({ from, commit }: Rollback, revision: PublishedRevision): boolean {
  if (revision.revision !== from) return false;
  return commit === undefined || revision.commit === undefined || revision.commit === commit;
}

/**
 * Rollbacks that publications have ended: there is a later revision that counts, or another one with the number of the failed one, or no
 * revision of the package is left.
 */
export function endedRollbacks(
  { rollbacks = [], allowOutOfBand }: SelectionSettings,
  revisionsOf: (name: { readonly repository: string; readonly package: string }) => readonly PublishedRevision[],
): Rollback[] {
  return rollbacks.filter((rollback) => {
    const revisions = revisionsOf(rollback);
    const counts = (one: PublishedRevision) => allowOutOfBand || one.outOfBand === undefined;
    const isLater = (one: PublishedRevision) =>
      one.revision > rollback.from || (one.revision === rollback.from && !isAbout(rollback, one));
    return revisions.length === 0 || revisions.some((one) => counts(one) && isLater(one));
  });
}

/** True if the last delivered revision is missing, only lower ones exist, and it was not deleted through Sluice. */
function isLost<Revision extends PublishedRevision>(
  highest: Revision | undefined,
  delivered: DeliveredRevision | undefined,
  facts: PackageFacts<Revision>,
): delivered is DeliveredRevision & { readonly revision: number } {
  if (delivered?.revision === undefined) return false;
  const revision = lastOf({ ...delivered, revision: delivered.revision });
  if ((highest?.revision ?? 0) >= revision) return false;
  return !facts.isDeleted({ ...delivered, revision });
}

function lastOf({ revision, reported = 0 }: DeliveredRevision & { readonly revision: number }): number {
  return Math.max(revision, reported);
}

function stateOf(delivered: DeliveredRevision | undefined): string {
  if (delivered?.hasFolder !== true) return 'nothing is delivered';
  return delivered.revision === undefined ? 'its folder stays as it is' : `v${delivered.revision} stays delivered`;
}

/** True for a refusal because of missing trust, which requires attention. */
export function isAlert({ reason }: DeliveryRefusal): boolean {
  return reason === 'OutOfBand' || reason === 'OutOfBandRemoval' || reason === 'TrustLost';
}

/** Repository names have no slash, so keys of packages of different repositories differ. */
export function packageKey(of: { readonly repository: string; readonly package: string }): string {
  return `${of.repository}/${of.package}`;
}
