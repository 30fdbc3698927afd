import { timestamp } from '../../../foundation/time/clock.ts';
import type { Commit, Oid } from '../../../git/git-repository.ts';
import { mergeBase } from '../../../git/objects/merge-base.ts';
import { type CommitFacts, parseCommitMessage, publishedRecordOf } from '../../model/record/commit-message.ts';
import type { LifecycleStep } from '../../model/record/record.ts';
import { approvalOf, areAllKnown, authorOf, claimed, writersOf } from '../../model/revision/attribution.ts';
import { isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import { ACTIONS } from '../../model/revision/revision-state.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { adoptionOf } from './adoption-of.ts';
import { reportedPushers } from './host-pushers.ts';
import { type ChainLink, madeIn, readCommit, recordsOf } from './record-chain.ts';
import { recordedBypass } from './recorded-bypass.ts';

/** Merges of a draft behind which the walk goes on; each costs a walk over the main branch. */
const MAX_MERGES = 20;

/** One event in the history of a revision. */
export interface HistoryEntry {
  /** RFC 3339. */
  readonly at: string;
  readonly by: string;
  readonly face: string;
  readonly action: string;
  readonly what: string;
  readonly reason: string | undefined;
  readonly commit: Oid;
}

/**
 * Returns the history of a revision, newest first: the commits of its draft, its records and, once published, the steps in the
 * approval commit. The walk ends where the draft branched from the main branch. Names without a trusted statement are marked as
 * claims.
 */
export async function historyOf(
  repo: RepositoryContext,
  revision: PackageRevision,
  limit: number,
): Promise<HistoryEntry[]> {
  const published = revision.ref.startsWith('refs/tags/');
  const [main, draft] = revision.tip.parents;
  const entries: HistoryEntry[] = [];
  if (published) {
    entries.push(await approvalEntry(repo, revision));
    const adoption = await adoptionOf(repo, revision);
    if (adoption !== undefined) entries.push(stepEntry(adoption, revision.commit));
    // A record that was written after publication has these steps too.
    const steps = revision.record?.steps.length ? [] : (publishedRecordOf(revision.tip.facts)?.steps ?? []);
    entries.push(...stepEntries(steps, revision.commit).map(markIf(revision.outOfBand !== undefined)));
    entries.push(...approvalEntries(revision).map(markIf(revision.outOfBand !== undefined)));
  }
  const records = await recordsOf(repo, revision, limit);
  const tip = published ? draft : revision.commit;
  if (tip !== undefined) {
    const walk = { tip, main: published ? main : undefined, limit };
    const commits = await commitsOf(repo, revision, walk, writerOf(revision, records));
    const pushed = commits.filter(({ face }) => face === 'git').map(({ commit }) => commit);
    const reported = await reportedPushers(repo, revision, pushed, repo.policyFor(revision).hostUsers);
    entries.push(...commits.map((entry) => ({ ...entry, by: reported.get(entry.commit) ?? entry.by })));
  }
  entries.push(...stepEntries(revision.record?.steps ?? [], revision.commit), ...recordEntries(records));
  return entries.sort((a, b) => (a.at === b.at ? rank(b) - rank(a) : a.at < b.at ? 1 : -1)).slice(0, limit);
}

function markIf(isClaim: boolean): (entry: HistoryEntry) => HistoryEntry {
  return (entry) => (isClaim ? { ...entry, by: claimed(entry.by), face: 'git' } : entry);
}

/** The author of a commit, where a trusted statement names one: given the commit and whether it is one that the signed list covers. */
type WriterOf = (commit: Commit, isCovered: boolean) => string | undefined;

function writerOf(revision: PackageRevision, records: readonly ChainLink[]): WriterOf & { readonly upTo?: Oid } {
  const signed = revision.outOfBand === undefined ? publishedRecordOf(revision.tip.facts)?.commits : undefined;
  const made = new Map<Oid, string>(signed?.map(({ commit, by }) => [commit, by]));
  for (const [commit, by] of madeIn(records)) made.set(commit, by);
  const writers = writersOf(revision);
  const areKnown = areAllKnown(writers?.contributors);
  const find: WriterOf = ({ oid, message }, isCovered) =>
    made.get(oid) ?? (areKnown && isCovered ? parseCommitMessage(message).actor : undefined);
  return Object.assign(find, writers?.upTo === undefined ? {} : { upTo: writers.upTo });
}

/** Orders events of the same second by their possible sequence. */
function rank({ action }: HistoryEntry): number {
  return ['push', 'init', 'copy', 'edit', ...ACTIONS].indexOf(action);
}

/** Returns the approval commit, or the approval of a commit that the Git host made, and the gates that it bypassed. */
async function approvalEntry(repo: RepositoryContext, revision: PackageRevision): Promise<HistoryEntry> {
  const { commit, tip } = revision;
  const by = revision.outOfBand === undefined ? authorOf(revision) : undefined;
  const bypass = await recordedBypass(revision, repo.trust);
  if (bypass !== undefined) return { ...stepEntry(bypass, commit), commit };
  const approval = approvalOf(revision);
  const made = entryOf(await repo.git.readCommit(commit), by, approval?.face);
  const isTagged = approval !== undefined && tip.statementTag !== undefined;
  const isShared = tip.facts.statement?.statement.sharedCommit !== undefined;
  const what = isShared ? `Approving package revision ${revision.path}/${revision.revision}, with others` : made.what;
  const entry = isTagged ? { ...stepEntry(approval, commit), what, commit } : made;
  const step = publishedRecordOf(tip.facts)?.steps.findLast(({ action }) => action === 'approve');
  if (step?.gates === undefined) return entry;
  const broken = publishedRecordOf(tip.facts)?.breakGlass === undefined ? '' : ' (break-glass)';
  return { ...entry, what: `${entry.what}, ${describeStep(step)}${broken}` };
}

/** The approvals before the last one. Whether they were required, or more than that, is not recorded. */
function approvalEntries({ tip, commit }: PackageRevision): HistoryEntry[] {
  const approvals = publishedRecordOf(tip.facts)?.approvals ?? [];
  return approvals.slice(0, -1).map(({ at, subject, face, mergeOf }) => ({
    ...{ at, by: subject, face, action: 'approval', commit, reason: undefined },
    what: mergeOf === undefined ? 'approval, one of several' : 'approval, for a merge of the Git host',
  }));
}

async function commitsOf(
  repo: RepositoryContext,
  revision: PackageRevision,
  { tip, main, limit }: { readonly tip: Oid; readonly main: Oid | undefined; readonly limit: number },
  writer: WriterOf & { readonly upTo?: Oid },
): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  const published = new Set(
    repo.index
      .ofPackage(revision.key.package)
      .filter(isPublished)
      .map(({ tip }) => tip.tree),
  );
  let next: Oid | undefined = tip;
  // Commits that were pushed after the list was signed are before this point.
  let isCovered = false;
  let merges = 0;
  while (next !== undefined && next !== main && entries.length < limit) {
    const [folder] = await repo.git.statObjects([`${next}:${revision.path}`]);
    const commit: Commit | undefined = folder === undefined ? undefined : await readCommit(repo, next);
    if (commit === undefined) break;
    const { annotations, action } = parseCommitMessage(commit.message);
    // A branch that was created with git begins at its first difference from the published content, unless it was created
    // with the package.
    if (action === undefined && next !== tip && published.has(folder?.oid)) break;
    // Commits of other packages are before the point where this draft branched from the main branch.
    const foreign = annotations.length > 0 && !annotations.some((annotation) => annotation.package === revision.path);
    if (foreign || commit.parents.length === 0) break;
    if (commit.parents.length > 1) {
      merges += 1;
      // A merge of the main branch is on the draft; what is on the main branch is before the point where the draft branched from it.
      if (merges > MAX_MERGES || (await isOn(repo, commit.oid, main ?? repo.index.mainHead))) break;
    }
    isCovered ||= next === writer.upTo;
    entries.push(entryOf(commit, writer(commit, isCovered)));
    const mine = annotations.find((annotation) => annotation.package === revision.path);
    if (isCreation(mine?.task)) break;
    next = commit.parents[0];
  }
  return entries;
}

async function isOn({ git }: RepositoryContext, commit: Oid, head: Oid | undefined): Promise<boolean> {
  return head === undefined || (await mergeBase(git, commit, head)) === commit;
}

function isCreation(task: unknown): boolean {
  const type = (task as { type?: unknown } | undefined)?.type;
  return type === 'init' || type === 'clone' || type === 'edit' || type === 'upgrade';
}

/** Records contain events without a commit on the draft: lifecycle steps, affirmed conditions, changed metadata. */
function recordEntries(records: readonly ChainLink[]): HistoryEntry[] {
  return records
    .filter(({ last, isTrusted }) => last.made === undefined && !(isTrusted && isStep(last.action)))
    .map(({ oid, subject, last: { at, by, face, action, reason }, isTrusted }) =>
      markIf(!isTrusted)({ at, by, face, action, what: subject, reason, commit: oid }),
    );
}

/** Lifecycle steps are in every later record, and are read from there. */
function isStep(action: string): boolean {
  return (ACTIONS as readonly string[]).includes(action);
}

/** `actor` is the one that a trusted statement names; without one the trailers of the commit are claims. */
function entryOf(commit: Commit, actor: string | undefined, face?: string): HistoryEntry {
  const facts = parseCommitMessage(commit.message);
  const claim = claimed(facts.actor ?? commit.author.name);
  return {
    at: timestamp(commit.committer.time),
    by: actor ?? claim,
    face: actor === undefined ? 'git' : (face ?? facts.face ?? 'git'),
    action: facts.action ?? 'push',
    what: `${commit.message.split('\n', 1)[0] ?? ''}${conflictsOf(facts)}`,
    reason: facts.reason,
    commit: commit.oid,
  };
}

/** What a merge kept or overwrote. */
function conflictsOf({ kept, overwritten }: CommitFacts): string {
  const lost = overwritten === undefined ? undefined : `changed on both sides, and overwritten ${overwritten}`;
  const texts = [kept, lost].filter((text) => text !== undefined);
  return texts.length === 0 ? '' : ` (${texts.join('; ')})`;
}

/** A push and an approval have entries as commits. */
function stepEntries(steps: readonly LifecycleStep[], commit: Oid): HistoryEntry[] {
  return steps.filter(({ action }) => action !== 'push' && action !== 'approve').map((step) => stepEntry(step, commit));
}

function describeStep({ action, gates }: LifecycleStep): string {
  return gates === undefined ? action : `${action} with closed gates: ${gates.join(', ')}`;
}

function stepEntry(step: LifecycleStep, commit: Oid): HistoryEntry {
  return {
    at: step.at,
    by: step.by,
    face: step.face,
    action: step.action,
    what: describeStep(step),
    reason: step.reason,
    commit: step.commit ?? commit,
  };
}
