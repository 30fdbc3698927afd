import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Oid } from '../../git/git-repository.ts';
import { claimed } from '../model/attribution.ts';
import { type HostUsers, personBehind } from '../model/host-users.ts';
import { draftRef, proposedRef } from '../model/layout.ts';
import type { PackageRevision } from '../model/package-revision.ts';
import type { Contributor, RevisionRecord } from '../model/record.ts';
import { PUSH_ACTOR } from '../model/verdict.ts';
import type { AttributedPush } from '../trust/attributed-pushes.ts';
import type { RepositoryContext } from './repository-context.ts';

/*
 * Who pushed, as the Git host reports it. A report can arrive before the push is seen, after a record was written about it, or never.
 * Therefore the record lists the commits of unknown pushers, and each reading of it evaluates the reports again.
 */

type RepositorySources = Pick<RepositoryContext, 'git' | 'layout' | 'trust' | 'namespace' | 'repository'>;

/** Commits that are read of one push; of a longer one only the last commit is known to have come with it. */
const MAX_COMMITS_OF_PUSH = 100;
/** Commits that are read for one answer. */
const MAX_READ_COMMITS = 500;

/** The record with the people whom the host reports in place of unknown pushers. */
export async function withHostPushers(
  repo: RepositorySources,
  revision: PackageRevision,
  record: RevisionRecord,
  hostUsers: HostUsers | undefined,
): Promise<RevisionRecord> {
  const unknown = record.contributors?.find(({ name }) => name === PUSH_ACTOR);
  if (hostUsers === undefined || unknown?.commits === undefined) return record;
  // A report explains only what was not there before.
  if (unknown.commits.includes(revision.commit))
    repo.trust.noteLook(`${repo.namespace}/${repo.repository}`, revision.ref, revision.commit);
  const pushes = hostPushes(repo, revision);
  if (pushes.length === 0) return record;
  const pushesOf = await pushesByCommit(repo, pushes, unknown.commits);
  const rest: Oid[] = [];
  const people = new Map<string, AttributedPush & { readonly commit: Oid }>();
  for (const commit of unknown.commits) {
    const found = pushesOf.get(commit) ?? [];
    const persons = found.map(({ user }) => personBehind(hostUsers, user));
    if (found.length === 0 || persons.includes(undefined)) rest.push(commit);
    for (const [index, push] of found.entries()) {
      const person = persons[index];
      if (person !== undefined && !people.has(person)) people.set(person, { ...push, commit });
    }
  }
  if (people.size === 0) return record;
  const contributors = (record.contributors ?? []).flatMap((one): Contributor[] => {
    if (one !== unknown) return [one];
    const [commit] = rest;
    return commit === undefined ? [] : [{ ...one, commit, commits: rest }];
  });
  for (const [name, { provider, user, commit }] of people) {
    if (contributors.some((one) => one.name === name)) continue;
    contributors.push({ name, face: 'git', since: unknown.since, commit, attributedBy: `${provider}:${user}` });
  }
  const known = { ...record, contributors, steps: knownSteps(record, pushesOf, hostUsers) };
  return withApprovals(known, new Set(people.keys()), rest.length === 0);
}

/** Approvals that were recorded while it was not known that their givers had pushed do not hold; fewer may be needed now. */
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

/** What a known person pushed stands for their proposal. */
function knownSteps(
  { steps }: RevisionRecord,
  pushesOf: ReadonlyMap<Oid, readonly AttributedPush[]>,
  hostUsers: HostUsers,
): RevisionRecord['steps'] {
  const last = steps.at(-1);
  if (last?.action !== 'push' || last.by !== PUSH_ACTOR || last.commit === undefined) return steps;
  const persons = new Set((pushesOf.get(last.commit) ?? []).map(({ user }) => personBehind(hostUsers, user)));
  const [person, ...others] = persons;
  return person === undefined || others.length > 0 ? steps : [...steps.slice(0, -1), { ...last, by: person }];
}

/** Who pushed commits, for people to read, as far as the host reports it: a user who is no listed person is a claim. */
export async function reportedPushers(
  repo: RepositorySources,
  revision: Pick<PackageRevision, 'key'>,
  commits: readonly Oid[],
  hostUsers: HostUsers | undefined,
): Promise<ReadonlyMap<Oid, string>> {
  if (hostUsers === undefined) return new Map();
  const pushesOf = await pushesByCommit(repo, hostPushes(repo, revision), commits);
  return new Map(
    [...pushesOf].map(([commit, pushes]) => {
      const names = pushes.map(
        ({ user, provider }) => personBehind(hostUsers, user) ?? claimed(`${user} at ${provider}`),
      );
      return [commit, [...new Set(names)].join(', ')];
    }),
  );
}

/** Reports on the branches of a revision, newest first. */
function hostPushes(
  { trust, layout, namespace, repository }: Omit<RepositorySources, 'git'>,
  { key }: Pick<PackageRevision, 'key'>,
): AttributedPush[] {
  const registration = `${namespace}/${repository}`;
  return [draftRef(layout, key), proposedRef(layout, key)].flatMap((ref) => trust.pushesTo(registration, ref));
}

/**
 * Which pushes brought a commit: those that ended with it, and those that ended with a later one and began before it. A push brings what
 * lies between its two ends on the line of first parents, and only where both ends are there. It does not bring what Sluice read before as
 * the tip of another branch, or below its end as the tip of this one: of a push on top of such a commit, only the tip is known to have come
 * with it.
 */
async function pushesByCommit(
  { git, trust, namespace, repository }: Omit<RepositorySources, 'layout'>,
  pushes: readonly AttributedPush[],
  commits: readonly Oid[],
): Promise<Map<Oid, AttributedPush[]>> {
  const wanted = new Set(commits);
  const found = new Map<Oid, AttributedPush[]>();
  let reads = MAX_READ_COMMITS;
  for (const push of pushes) {
    const brought: Oid[] = [];
    let oid: Oid | undefined = push.after;
    const budget = Math.min(reads, MAX_COMMITS_OF_PUSH);
    let left = budget;
    let wasThere = false;
    while (oid !== undefined && oid !== push.before && left > 0) {
      const seenOn = trust.firstLook(`${namespace}/${repository}`, oid);
      wasThere = seenOn !== undefined && (oid !== push.after || seenOn !== push.ref);
      if (wasThere) break;
      if (wanted.has(oid)) brought.push(oid);
      // All of a new branch came with its first push.
      if (push.before === undefined && brought.length === wanted.size) break;
      left -= 1;
      oid = await firstParent(git, oid);
    }
    reads -= budget - left;
    // Of a branch that was set to something else only the tip is known to have come this way.
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
