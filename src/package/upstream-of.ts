import type { RevisionIndex } from './index/revision-index.ts';
import { parseRef, type RepositoryLayout } from './layout.ts';
import { isPublished, type PackageRevision } from './package-revision.ts';

/** What of a registered repository says whether a package comes from it. */
interface UpstreamRepository {
  readonly repository: string;
  readonly url: string;
  readonly layout: RepositoryLayout;
  readonly index: Pick<RevisionIndex, 'ofPackage'>;
}

/** Where a package comes from, as far as registered repositories hold it. */
export interface Upstream {
  readonly repository: string;
  /** The revision that the package has; undefined if that is gone, or was never published. */
  readonly current: PackageRevision | undefined;
  /** The draft that it was cloned from, if it was one: its workspace. */
  readonly draft: string | undefined;
  /** Published revisions with a higher number, lowest first. */
  readonly newer: readonly PackageRevision[];
}

/** Finds the upstream that the Kptfile of a revision names (`upstreamLock`). Undefined if it names none that is registered. */
export function upstreamOf(
  revision: PackageRevision,
  repositories: Iterable<UpstreamRepository>,
): Upstream | undefined {
  const lock = revision.kptfile?.upstreamLock?.git;
  if (lock?.repo === undefined || lock.ref === undefined) return undefined;
  const address = comparableAddress(lock.repo);
  for (const { repository, url, layout, index } of repositories) {
    if (comparableAddress(url) !== address) continue;
    const path = packageAt(layout, lock.directory ?? '');
    const published =
      path === undefined ? [] : index.ofPackage(path).filter((one) => isPublished(one) && one.revision > 0);
    if (published.length === 0) continue;
    const meaning = parseRef(layout, `refs/heads/${lock.ref}`);
    const draft = meaning.kind === 'draft' || meaning.kind === 'proposed' ? meaning.workspace : undefined;
    const version = lock.ref.slice(lock.ref.lastIndexOf('/') + 1);
    const tagged = draft === undefined ? published.find((one) => one.ref.endsWith(`/${version}`)) : undefined;
    const current = published.find((one) => one.commit === lock.commit) ?? tagged;
    const newer = published.filter((one) => one.revision > (current?.revision ?? 0));
    return {
      repository,
      current,
      draft,
      newer: newer.sort((a, b) => a.revision - b.revision),
    };
  }
  return undefined;
}

/** One form of an address: file URLs as paths, without `.git` and slashes at the end. */
export function comparableAddress(address: string): string {
  return address
    .replace(/^file:\/\/(?=\/)/, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/, '');
}

/** The package in a folder of the repository; undefined outside of the repository's directory. */
function packageAt({ directory }: RepositoryLayout, folder: string): string | undefined {
  const path = folder.replace(/^\/+|\/+$/g, '');
  if (directory === '') return path;
  return path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : undefined;
}
