import type { TargetSettings } from './delivery-target.ts';
import { compareText } from './path-rules.ts';
import type { Refusal } from './refusal.ts';

/** What choosing needs to know of a published revision. */
export interface PublishedRevision {
  readonly repository: string;
  /** Path of the package in its repository. */
  readonly package: string;
  readonly revision: number;
  readonly labels: Readonly<Record<string, string>>;
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
 * the gates, or the highest of all where the target allows that. Labels are judged on the revision that would be delivered.
 */
export function selectRevisions<Revision extends PublishedRevision>(
  target: TargetSettings,
  revisions: Iterable<Revision>,
): Selection<Revision> {
  const { repositories, packages, packageSelector } = target.selector;
  const byPackage = new Map<string, Revision[]>();
  for (const revision of revisions) {
    if (repositories !== undefined && !repositories.includes(revision.repository)) continue;
    if (packages !== undefined && !packages.includes(revision.package)) continue;
    const key = packageKey(revision);
    const list = byPackage.get(key);
    if (list === undefined) byPackage.set(key, [revision]);
    else list.push(revision);
  }
  const chosen: Revision[] = [];
  const refused: PackageRefusal[] = [];
  for (const [, list] of [...byPackage].sort(([a], [b]) => compareText(a, b))) {
    list.sort((a, b) => b.revision - a.revision);
    const choice = choose(target, list);
    const matches = Object.entries(packageSelector?.matchLabels ?? {}).every(
      ([label, value]) => (choice.revision ?? list[0])?.labels[label] === value,
    );
    if (!matches) continue;
    if (choice.refused !== undefined) refused.push(choice.refused);
    if (choice.revision !== undefined) chosen.push(choice.revision);
  }
  return { chosen, refused };
}

function choose<Revision extends PublishedRevision>(
  target: TargetSettings,
  list: readonly Revision[],
): { readonly revision?: Revision; readonly refused?: PackageRefusal } {
  const [highest] = list;
  if (highest === undefined) return {};
  const { repository, package: path } = highest;
  const pin = pinOf(target, repository, path);
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

function pinOf({ pins }: TargetSettings, repository: string, path: string): number | undefined {
  const named = [`${repository}/${path}`, path].find((key) => Object.hasOwn(pins, key));
  return named === undefined ? undefined : pins[named];
}

/** Repository names have no slash, so that this tells packages of different repositories apart. */
export function packageKey(of: { readonly repository: string; readonly package: string }): string {
  return `${of.repository}/${of.package}`;
}
