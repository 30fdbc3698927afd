import type { PullRequest } from '../../../src/forge/forge.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { PullRequests } from '../pull-requests.ts';
import { proposalsIn } from '../text/section.ts';
import { membersAt } from './batch-branch.ts';

/** The shared pull requests that are brought up to date through one object, with what they list. */
export interface ListedProposals {
  readonly own: readonly PullRequest[];
  /** By branch of these: the proposals that are still there, as far as they are reviewed through this object, or by no one policy. */
  readonly listed: ReadonlyMap<string, readonly string[]>;
  /** Proposals that get no other pull request now: they are in one that has ended, or that is brought up to date through another object. */
  readonly elsewhere: ReadonlySet<string>;
}

export interface ListingRules {
  readonly pulls: PullRequests;
  /** Whether a proposal is still in a pull request that names it. */
  isThere(proposal: string, number: number): boolean;
  /** Through what a proposal is reviewed by its policy; undefined if it is not known, or no one policy has it reviewed. */
  reviewedThrough(proposal: string): PullRequests | undefined;
  /** Addresses of those that were looked at through others. Gets those of its own. */
  readonly seen: Set<string>;
}

/**
 * Policies can name one host with several credentials, so that several objects read the same pull requests. Each of these is written through one of
 * them: that of the first proposal which it lists. Where all would write it, each would take out what the others show.
 */
export async function listProposals(
  repository: PackageRepository,
  shared: readonly PullRequest[],
  { pulls, isThere, reviewedThrough, seen }: ListingRules,
): Promise<ListedProposals> {
  const own: PullRequest[] = [];
  const listed = new Map<string, readonly string[]>();
  const ended: string[] = [];
  const ofOthers: string[] = [];
  for (const pull of shared) {
    const { number, state, head, url } = pull;
    const proposals = (await proposalsOf(pull, repository)).filter((one) => isThere(one, number));
    const through = proposals.map(reviewedThrough);
    const owner = through.find((one) => one !== undefined);
    const isOwn = owner === undefined ? !seen.has(url) : owner === pulls;
    if (state !== 'open') ended.push(...proposals);
    else if (!isOwn) ofOthers.push(...proposals);
    if (!isOwn) continue;
    seen.add(url);
    own.push(pull);
    const isOfIt = (_: string, at: number) => [pulls, undefined].includes(through[at]);
    listed.set(head.branch, proposals.filter(isOfIt));
  }
  const here = new Set([...listed.values()].flat());
  return { own, listed, elsewhere: new Set([...ended, ...ofOthers.filter((one) => !here.has(one))]) };
}

/** Each proposal looks for its pull request among all of them: their long texts are searched once. */
const markedIn = new WeakMap<PullRequest, readonly string[]>();

/** Where a user has removed the marker from the text, the commits of the branch have the proposals too. */
export async function proposalsOf(pull: PullRequest, { git }: PackageRepository): Promise<readonly string[]> {
  const { body, head } = pull;
  const marked = markedIn.get(pull) ?? proposalsIn(body);
  markedIn.set(pull, marked);
  if (marked.length > 0) return marked;
  return ((await membersAt(git, head.commit)) ?? []).map(({ proposal }) => proposal);
}
