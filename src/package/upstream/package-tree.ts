import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import { type Upstream, upstreamFinder } from './upstream-of.ts';

type Revision = Stored<PackageRevision>;

/** A package with the packages that were cloned from it. */
export interface PackageNode {
  /** `<repository>/<package>`; of an upstream that no registered repository contains, its Git address. */
  readonly package: string;
  /** Name and number of the latest published revision. */
  readonly latest?: { readonly name: string; readonly revision: number };
  /** The upstream revision that the latest published revision comes from, without one the open revision: `v1`, or the ref in Git. */
  readonly from?: string;
  /** Number of published upstream revisions after that one; undefined where they are unknown. */
  readonly behind?: number;
  /** Drafts and proposed revisions, by name. */
  readonly open: readonly OpenRevision[];
  readonly downstream: readonly PackageNode[];
}

export interface OpenRevision {
  readonly name: string;
  readonly lifecycle: string;
  readonly from?: string;
}

interface Package {
  readonly name: string;
  readonly latest: Revision | undefined;
  readonly open: readonly Revision[];
  readonly upstream: Upstream | undefined;
  /** Key of the package that it was cloned from. */
  readonly parent: string | undefined;
}

/**
 * Arranges packages below the ones that they were cloned from, sorted by name. Each package is in the result once: of packages that were
 * cloned from each other, the first one is at the top.
 */
export function packageTree(revisions: readonly Revision[]): PackageNode[] {
  const upstreamOf = upstreamFinder(revisions);
  const packages = new Map<string, Package>();
  for (const [name, of] of byPackage(revisions)) packages.set(name, packageOf(name, of, upstreamOf));
  const children = new Map<string, string[]>();
  const roots: string[] = [];
  for (const { name, parent } of packages.values()) {
    if (parent === undefined || parent === name) roots.push(name);
    else {
      const siblings = children.get(parent);
      if (siblings === undefined) children.set(parent, [name]);
      else siblings.push(name);
    }
  }
  // Upstreams that are in no registered repository.
  for (const parent of children.keys()) if (!packages.has(parent)) roots.push(parent);
  const placed = new Set<string>();
  const nodes = roots.sort().map((name) => node(name));
  // What is left was cloned in a circle.
  for (const name of [...packages.keys()].sort()) if (!placed.has(name)) nodes.push(node(name));
  return nodes;

  function node(name: string): PackageNode {
    placed.add(name);
    const of = packages.get(name);
    const below: PackageNode[] = [];
    for (const child of (children.get(name) ?? []).sort()) if (!placed.has(child)) below.push(node(child));
    if (of === undefined) return { package: name, open: [], downstream: below };
    const { latest, open, upstream } = of;
    const from = fromOf(latest ?? open[0], upstreamOf);
    return {
      package: name,
      ...(latest === undefined ? {} : { latest: { name: latest.metadata.name, revision: numberOf(latest) } }),
      ...(from === undefined ? {} : { from }),
      ...(upstream === undefined ? {} : { behind: upstream.newer.length }),
      open: open.map((one) => {
        const source = fromOf(one, upstreamOf);
        const { lifecycle = 'Draft' } = one.spec;
        return { name: one.metadata.name, lifecycle, ...(source === undefined ? {} : { from: source }) };
      }),
      downstream: below,
    };
  }
}

function byPackage(revisions: readonly Revision[]): Map<string, Revision[]> {
  const found = new Map<string, Revision[]>();
  for (const revision of revisions) {
    const { repository, packageName } = revision.spec;
    const name = `${repository}/${packageName}`;
    const known = found.get(name);
    if (known === undefined) found.set(name, [revision]);
    else known.push(revision);
  }
  return found;
}

function packageOf(
  name: string,
  revisions: readonly Revision[],
  upstreamOf: (revision: Revision) => Upstream | undefined,
): Package {
  const published = revisions.filter((one) => numberOf(one) > 0).sort((a, b) => numberOf(b) - numberOf(a));
  const open = revisions
    .filter(({ spec }) => spec.lifecycle === 'Draft' || spec.lifecycle === 'Proposed')
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const [latest] = published;
  const source = latest ?? open[0];
  const upstream = source === undefined ? undefined : upstreamOf(source);
  const first = upstream?.published[0];
  const lock = source?.status?.upstreamLock?.git;
  const address = lock === undefined ? undefined : `${lock.repo ?? ''}/${lock.directory ?? ''}`;
  const parent = first === undefined ? address : `${first.spec.repository}/${first.spec.packageName}`;
  return { name, latest, open, upstream, parent };
}

function fromOf(
  revision: Revision | undefined,
  upstreamOf: (revision: Revision) => Upstream | undefined,
): string | undefined {
  if (revision === undefined) return undefined;
  const current = upstreamOf(revision)?.current;
  return current === undefined ? revision.status?.upstreamLock?.git?.ref : `v${numberOf(current)}`;
}

function numberOf({ spec }: Revision): number {
  return spec.revision ?? 0;
}
