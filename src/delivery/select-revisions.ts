import type { TargetSettings } from './delivery-target.ts';
import { compareText } from './path-rules.ts';
import type { Refusal } from './refusal.ts';

/** What choosing needs to know of a published revision. */
export interface PublishedRevision {
  readonly repository: string;
  /** Path of the package in its repository. */
  readonly package: string;
  readonly revision: number;
  /** Why the revision counts as published past the gates, if it does. */
  readonly outOfBand?: string;
}

export interface PackageRefusal extends Refusal {
  readonly repository: string;
  readonly package: string;
  readonly revision?: number;
}

export interface Selection<Revision> {
  /** One revision a package, by repository and package. */
  readonly chosen: readonly Revision[];
  /** Revisions that would have been chosen, and why they were not. */
  readonly refused: readonly PackageRefusal[];
}

/**
 * Which published revisions a target delivers: of each selected package the pinned one, else the highest that did not come past
 * the gates, or the highest of all where the target allows that. `isSelected` is asked for the revision that would be delivered.
 */
export function selectRevisions<Revision extends PublishedRevision>(
  target: Pick<TargetSettings, 'pins' | 'allowOutOfBand'>,
  revisions: Iterable<Revision>,
  isSelected: (revision: Revision) => boolean,
): Selection<Revision> {
  const byPackage = Map.groupBy(revisions, packageKey);
  const chosen: Revision[] = [];
  const refused: PackageRefusal[] = [];
  for (const [, list] of [...byPackage].sort(([a], [b]) => compareText(a, b))) {
    const ordered = list.sort((a, b) => b.revision - a.revision);
    const choice = choose(target, ordered);
    const judged = choice.revision ?? ordered[0];
    if (judged === undefined || !isSelected(judged)) continue;
    if (choice.refused !== undefined) refused.push(choice.refused);
    if (choice.revision !== undefined) chosen.push(choice.revision);
  }
  return { chosen, refused };
}

function choose<Revision extends PublishedRevision>(
  target: Pick<TargetSettings, 'pins' | 'allowOutOfBand'>,
  list: readonly Revision[],
): { readonly revision?: Revision; readonly refused?: PackageRefusal } {
  const [highest] = list;
  if (highest === undefined) return {};
  const { repository, package: path } = highest;
  const pin = target.pins?.find((one) => one.repository === repository && one.package === path)?.revision;
  const candidates = pin === undefined ? list : list.filter(({ revision }) => revision === pin);
  const [first] = candidates;
  if (first === undefined) {
    const message = `v${pin} is pinned, but the package has no such published revision; highest is v${highest.revision}`;
    return { refused: { repository, package: path, reason: 'PinnedRevisionMissing', message } };
  }
  const revision = candidates.find(({ outOfBand }) => target.allowOutOfBand || outOfBand === undefined);
  if (revision === first) return { revision };
  const instead =
    revision === undefined ? 'nothing is delivered instead' : `v${revision.revision} is delivered instead`;
  const message = `v${first.revision} did not come through the gates (${first.outOfBand}) and the target does not allow that; ${instead}`;
  const refused = { repository, package: path, revision: first.revision, reason: 'OutOfBand', message } as const;
  return revision === undefined ? { refused } : { revision, refused };
}

/** Repository names have no slash, so that this tells packages of different repositories apart. */
export function packageKey(of: { readonly repository: string; readonly package: string }): string {
  return `${of.repository}/${of.package}`;
}
