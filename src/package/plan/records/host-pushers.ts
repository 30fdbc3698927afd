import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../../git/git-repository.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { PUSH_ACTOR } from '../../model/gates/verdict.ts';
import { draftRef, proposedRef } from '../../model/identity/layout.ts';
import { type HostUsers, userOfAccount } from '../../model/policy/host-users.ts';
import type { Contributor, RevisionRecord } from '../../model/record/record.ts';
import { claimed } from '../../model/revision/attribution.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { KeptPush } from '../../trust/ledger/attributed-pushes.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';

/*
 * The pushers that the Git host reports. A report can arrive before the push is seen, after a record was written about it, or never.
 * Therefore the record lists the commits of unknown pushers, and each reading of it evaluates the reports again.
 */

type RepositorySources = Pick<RepositoryContext, 'git' | 'layout' | 'trust' | 'namespace' | 'repository'>;

/** Maximum number of commits that are read of one push; of a longer one only the last commit is attributed. */
const MAX_COMMITS_OF_PUSH = 100;
/** Commits that are read for one answer. */
const MAX_READ_COMMITS = 500;

/** Returns the record with the users that the host reports in place of unknown pushers. */
export async function withHostPushers(
  repo: RepositorySources,
  revision: PackageRevision,
  record: RevisionRecord,
  hostUsers: HostUsers | undefined,
): Promise<RevisionRecord> {
  const unknown = record.contributors?.find(({ name }) => name === PUSH_ACTOR);
  // Other users may have pushed an attributed commit too, and their reports may arrive later.
  const attributed = (record.contributors ?? []).filter(({ name }) => name !== PUSH_ACTOR);
  const unknownCommits = unknown?.commits ?? [];
  const commits = [...new Set([...unknownCommits, ...attributed.flatMap((one) => one.commits ?? [])])];
  if (hostUsers === undefined || commits.length === 0) return record;
  // A report only explains commits that did not exist before.
  if (unknownCommits.includes(revision.commit))
    repo.trust.reports.noteLook(`${repo.namespace}/${repo.repository}`, revision.ref, revision.commit);
  const pushes = hostPushes(repo, revision);
  if (pushes.length === 0) return record;
  const pushesOf = await pushesByCommit(repo, pushes, commits);
  const rest: Oid[] = [];
  const people = new Map<string, { readonly push: KeptPush; readonly commits: Oid[] }>();
  for (const commit of commits) {
    const found = pushesOf.get(commit) ?? [];
    const persons = found.map(({ user }) => userOfAccount(hostUsers, user));
    const isUnknown = unknownCommits.includes(commit);
    if (persons.includes(undefined) || (isUnknown && found.every(({ isSuperseded }) => isSuperseded)))
      rest.push(commit);
    for (const [index, push] of found.entries()) {
      const person = persons[index];
      if (person === undefined) continue;
      const entry = people.get(person) ?? { push, commits: [] };
      people.set(person, entry);
      if (!entry.commits.includes(commit)) entry.commits.push(commit);
    }
  }
  if (people.size === 0 && rest.length <= unknownCommits.length) return record;
  const contributors = contributorsWith(record.contributors ?? [], people, rest);
  if (sameValue(contributors, record.contributors)) return record;
  const known = { ...record, contributors, steps: knownSteps(record, pushesOf, hostUsers) };
  const areAllKnown = !contributors.some(({ name }) => name === PUSH_ACTOR);
  return withApprovals(known, new Set(people.keys()), areAllKnown);
}

/** `people` are those that the host reports, `rest` the remaining commits of unknown pushers. */
function contributorsWith(
  before: readonly Contributor[],
  people: ReadonlyMap<string, { readonly push: KeptPush; readonly commits: readonly Oid[] }>,
  rest: readonly Oid[],
): Contributor[] {
  const [first] = rest;
  const unknown = before.find(({ name }) => name === PUSH_ACTOR);
  const contributors = before.flatMap((one): Contributor[] => {
    // Not all commits are known, so the pusher stays unknown.
    if (one === unknown && one.commits !== undefined)
      return first === undefined ? [] : [{ ...one, commit: first, commits: [...rest] }];
    const commits = people.get(one.name)?.commits;
    return [commits === undefined ? one : { ...one, commits: [...new Set([...(one.commits ?? []), ...commits])] }];
  });
  const since = (commit: Oid | undefined) =>
    (unknown ?? before.find(({ commits = [] }) => commit !== undefined && commits.includes(commit)))?.since ?? '';
  if (unknown === undefined && first !== undefined)
    contributors.push({ name: PUSH_ACTOR, face: 'git', since: since(first), commit: first, commits: [...rest] });
  for (const [name, { push, commits }] of people) {
    if (contributors.some((one) => one.name === name)) continue;
    const [commit] = commits;
    const entry = { name, face: 'git', since: since(commit), ...(commit === undefined ? {} : { commit }) };
    contributors.push({ ...entry, attributedBy: `${push.provider}:${push.user}`, commits: [...commits] });
  }
  return contributors;
}

/** Approvals of users who turn out to have pushed do not count; fewer may be required now. */
function withApprovals(record: RevisionRecord, pushers: ReadonlySet<string>, areAllKnown: boolean): RevisionRecord {
  const { approvals, proposal, ...rest } = record;
  const { approvalsNeeded, ...kept } = proposal ?? { gates: [] };
  const needed = approvalsNeeded === undefined || areAllKnown ? {} : { approvalsNeeded };
  return {
    ...rest,
    ...(approvals === undefined ? {} : { approvals: approvals.filter(({ subject }) => !pushers.has(subject)) }),
    ...(proposal === undefined ? {} : { proposal: { ...kept, ...needed } }),
  };
}

/** A push by a known person counts as a proposal by that person. */
function knownSteps(
  { steps }: RevisionRecord,
  pushesOf: ReadonlyMap<Oid, readonly KeptPush[]>,
  hostUsers: HostUsers,
): RevisionRecord['steps'] {
  const last = steps.at(-1);
  if (last?.action !== 'push' || last.by !== PUSH_ACTOR || last.commit === undefined) return steps;
  const pushes = (pushesOf.get(last.commit) ?? []).filter(({ isSuperseded }) => !isSuperseded);
  const persons = new Set(pushes.map(({ user }) => userOfAccount(hostUsers, user)));
  const [person, ...others] = persons;
  return person === undefined || others.length > 0 ? steps : [...steps.slice(0, -1), { ...last, by: person }];
}

/** Returns the pushers of commits for display, as far as the host reports them: an unlisted account is a claim. */
export async function reportedPushers(
  repo: RepositorySources,
  revision: Pick<PackageRevision, 'key'>,
  commits: readonly Oid[],
  hostUsers: HostUsers | undefined,
): Promise<ReadonlyMap<Oid, string>> {
  if (hostUsers === undefined) return new Map();
  const live = hostPushes(repo, revision).filter(({ isSuperseded }) => !isSuperseded);
  const pushesOf = await pushesByCommit(repo, live, commits);
  return new Map(
    [...pushesOf].map(([commit, pushes]) => {
      const names = pushes.map(
        ({ user, provider }) => userOfAccount(hostUsers, user) ?? claimed(`${user} at ${provider}`),
      );
      return [commit, [...new Set(names)].join(', ')];
    }),
  );
}

/** Reports on the branches of a revision, newest first. */
function hostPushes(
  { trust, layout, namespace, repository }: Omit<RepositorySources, 'git'>,
  { key }: Pick<PackageRevision, 'key'>,
): KeptPush[] {
  const registration = `${namespace}/${repository}`;
  return [draftRef(layout, key), proposedRef(layout, key)].flatMap((ref) => trust.reports.latest(registration, ref));
}

/**
 * Maps commits to the pushes that added them: pushes that ended with the commit, and those that ended with a later one and began
 * before it. A push adds the commits between its two ends on the first-parent line, if both ends exist. It does not add commits that
 * Sluice read before as the tip of another branch, or below its end as the tip of this one: of a push on top of such a commit, only
 * the tip is known to be added.
 */
async function pushesByCommit(
  { git, trust, namespace, repository }: Omit<RepositorySources, 'layout'>,
  pushes: readonly KeptPush[],
  commits: readonly Oid[],
): Promise<Map<Oid, KeptPush[]>> {
  const wanted = new Set(commits);
  const found = new Map<Oid, KeptPush[]>();
  let reads = MAX_READ_COMMITS;
  for (const push of pushes) {
    const brought: Oid[] = [];
    let oid: Oid | undefined = push.after;
    const budget = Math.min(reads, MAX_COMMITS_OF_PUSH);
    let left = budget;
    let wasThere = false;
    while (oid !== undefined && oid !== push.before && left > 0) {
      const seenOn = trust.reports.firstLook(`${namespace}/${repository}`, oid);
      wasThere = seenOn !== undefined && (oid !== push.after || seenOn !== push.ref);
      if (wasThere) break;
      if (wanted.has(oid)) brought.push(oid);
      // All commits of a new branch were added by its first push.
      if (push.before === undefined && brought.length === wanted.size) break;
      left -= 1;
      oid = await firstParent(git, oid);
    }
    reads -= budget - left;
    // Of a branch that was reset only the tip is known to be added by this push.
    const isWhole = !wasThere && (push.before === undefined || oid === push.before);
    for (const commit of isWhole ? brought : brought.filter((one) => one === push.after))
      found.set(commit, [...(found.get(commit) ?? []), push]);
  }
  return found;
}

async function firstParent(git: RepositorySources['git'], oid: Oid): Promise<Oid | undefined> {
  try {
    return (await git.readCommit(oid)).parents[0];
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}
