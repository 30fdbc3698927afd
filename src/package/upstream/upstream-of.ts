import { trimEndsOf } from '../../foundation/text/trim-characters.ts';
import { comparableAddress } from '../../git/open/repository-address.ts';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';

type Revision = Stored<PackageRevision>;
type GitLocator = NonNullable<NonNullable<NonNullable<PackageRevision['status']>['selfLock']>['git']>;

/** The upstream of a package, if a registered repository contains it. */
export interface Upstream {
  readonly repository: string;
  /** The upstream revision of the package; undefined if it was deleted or never published. */
  readonly current: Revision | undefined;
  /** The draft that it was cloned from, if it was one: its workspace. */
  readonly draft: string | undefined;
  /** Published revisions of the upstream, lowest number first. */
  readonly published: readonly Revision[];
  /** Those of them with a higher number than the current one. */
  readonly newer: readonly Revision[];
}

/** Finds the upstream of a revision, which its Kptfile names (`upstreamLock`); undefined if it is none of those given. */
export function upstreamFinder(revisions: Iterable<Revision>): (revision: Revision) => Upstream | undefined {
  const byPlace = new Map<string, Revision[]>();
  for (const revision of revisions) {
    const self = revision.status?.selfLock?.git;
    if (self === undefined || numberOf(revision) <= 0) continue;
    const place = placeOf(self);
    const known = byPlace.get(place);
    if (known === undefined) byPlace.set(place, [revision]);
    else known.push(revision);
  }
  for (const published of byPlace.values()) published.sort((a, b) => numberOf(a) - numberOf(b));
  return ({ status }) => {
    const lock = status?.upstreamLock?.git;
    const published = lock === undefined ? undefined : byPlace.get(placeOf(lock));
    const [first] = published ?? [];
    if (lock === undefined || published === undefined || first === undefined) return undefined;
    const draft = /^(?:drafts|proposed)\/.+\/([^/]+)$/.exec(lock.ref ?? '')?.[1];
    const tag = (one: Revision) => one.status?.selfLock?.git?.ref;
    const current =
      published.find((one) => lock.commit !== undefined && one.status?.selfLock?.git?.commit === lock.commit) ??
      (draft === undefined ? published.find((one) => lastPart(tag(one)) === lastPart(lock.ref)) : undefined);
    const number = current === undefined ? 0 : numberOf(current);
    const newer = published.filter((one) => numberOf(one) > number);
    return { repository: first.spec.repository, current, draft, published, newer };
  };
}

function placeOf({ repo = '', directory = '' }: GitLocator): string {
  return `${comparableAddress(repo)}\n${trimEndsOf(directory, '/')}`;
}

function lastPart(ref: string | undefined): string | undefined {
  return ref?.slice(ref.lastIndexOf('/') + 1);
}

function numberOf({ spec }: Revision): number {
  return spec.revision ?? 0;
}
