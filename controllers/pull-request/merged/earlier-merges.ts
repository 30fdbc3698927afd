import type { Forge, PullRequest } from '../../../src/forge/forge.ts';
import type { Oid } from '../../../src/git/git-repository.ts';
import { latestIn } from '../../../src/package/plan/records/on-main.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';

/** Commits of the main branch that are searched. */
const MAX_COMMITS = 500;
/** Pull requests that changed last, among which the merges are; one request to most hosts. */
const MAX_PULLS = 100;
/** How long a merge waits for each earlier one: as long as that may wait for its commits, and as much to be published. */
const MAX_WAIT_MS = 120_000;
/** A merge waits for no more than that. */
const MAX_EARLIER = 4;

/** A merge of one package. */
export interface PackageMergeAt {
  readonly package: string;
  /** From the root of the repository. */
  readonly path: string;
  readonly commit: Oid;
  /** Of the pull request. */
  readonly number: number;
}

/**
 * Merges of one package are published in the order of the main branch, whichever controller publishes them and whatever is read first. Two rules
 * ensure it. The kernel never gives a number to a merge below the commit of the last publication (`MergeFacts.later`). So that earlier ones are not
 * refused for that, a later one waits for them here: for merged pull requests that changed the package since the last publication. The wait is
 * bounded, as some never publish; one that comes too late all the same is reported as not published.
 *
 * Returns those that it waits for, the last one first; none once it has waited long enough. `waitedMs` is since its commit was found, as those of the
 * earlier ones are there then too. The host is read only where the package was changed since its last publication; `counts` returns whether a pull
 * request may still publish.
 */
export async function awaitedMerges(
  { git, index }: Pick<PackageRepository, 'git' | 'index'>,
  forge: Pick<Forge, 'listUpdated'>,
  { package: name, path, commit, number }: PackageMergeAt,
  {
    waitedMs,
    counts,
    signal,
  }: {
    readonly waitedMs: number;
    readonly counts: (pull: PullRequest) => Promise<boolean>;
    readonly signal: AbortSignal;
  },
): Promise<readonly PullRequest[]> {
  const latest = latestIn(index.ofPackage(name));
  const [onto] = (await git.readCommit(commit)).parents;
  const [before] = onto === undefined ? [] : await git.statObjects([`${onto}:${path}`]);
  if (before?.oid === latest?.tip.tree) return [];
  const line: { readonly oid: Oid; readonly isMerge: boolean }[] = [];
  let oid = onto;
  for (; oid !== undefined && oid !== latest?.commit && line.length < MAX_COMMITS; ) {
    const { parents } = await git.readCommit(oid);
    line.push({ oid, isMerge: parents.length > 1 });
    [oid] = parents;
  }
  const commits = [...line.map((one) => one.oid), ...(oid === undefined ? [] : [oid])];
  const trees = (await git.statObjects(commits.map((one) => `${one}:${path}`))).map((stat) => stat?.oid);
  const changes = line.map((_, at) => trees[at] !== trees[at + 1]);
  if (!changes.includes(true)) return [];
  const merged = new Map((await otherMerges(forge, number, signal)).map((pull) => [pull.merged?.commit, pull]));
  const earlier: PullRequest[] = [];
  let pull: PullRequest | undefined;
  let hasChange = false;
  const countPull = async () => {
    if (pull !== undefined && hasChange && (await counts(pull))) earlier.push(pull);
    hasChange = false;
  };
  for (const [at, one] of line.entries()) {
    const next = merged.get(one.oid);
    if (next !== undefined || line[at - 1]?.isMerge === true) {
      await countPull();
      pull = next;
    }
    // Below the last commit of a rebase are its others.
    hasChange ||= changes[at] === true;
  }
  await countPull();
  const awaited = earlier.slice(0, MAX_EARLIER);
  return waitedMs >= awaited.length * MAX_WAIT_MS ? [] : awaited;
}

/** The pull requests other than this one that were merged, of those that changed last. */
async function otherMerges(
  forge: Pick<Forge, 'listUpdated'>,
  number: number,
  signal: AbortSignal,
): Promise<readonly PullRequest[]> {
  return (await otherPulls(forge, number, signal)).filter(({ state }) => state === 'merged');
}

/** The pull requests other than this one, in any state, of those that changed last. */
export async function otherPulls(
  forge: Pick<Forge, 'listUpdated'>,
  number: number,
  signal: AbortSignal,
): Promise<readonly PullRequest[]> {
  const recent = await forge.listUpdated('1970-01-01T00:00:00Z', MAX_PULLS, signal);
  return recent.filter((pull) => pull.number !== number);
}
