import { timestamp } from '../foundation/clock.ts';
import { isSluiceError } from '../foundation/sluice-error.ts';
import type { Commit, Oid } from '../git/git-repository.ts';
import { parseCommitMessage, publishedRecordOf } from './commit-message.ts';
import { ACTIONS } from './kernel/types.ts';
import { isPublished, type PackageRevision } from './package-revision.ts';
import { type LifecycleStep, parseRecord, type RevisionRecord } from './record.ts';
import type { Workbench } from './write/workbench.ts';

/** One thing that happened to a revision. */
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
 * What happened to a revision, newest first: the commits of its draft, its records and, once published, the steps that the
 * approval commit carries. The walk ends where the draft left the main branch.
 */
export async function historyOf(bench: Workbench, revision: PackageRevision, limit: number): Promise<HistoryEntry[]> {
  const published = revision.ref.startsWith('refs/tags/');
  const [main, draft] = revision.tip.parents;
  const entries: HistoryEntry[] = [];
  if (published) {
    entries.push(await approvalEntry(bench, revision));
    // A record that was written after publication has these steps too.
    const steps = revision.record?.steps.length ? [] : (publishedRecordOf(revision.tip.facts)?.steps ?? []);
    entries.push(...stepEntries(steps, revision.commit));
    entries.push(...approvalEntries(revision));
  }
  const tip = published ? draft : revision.commit;
  if (tip !== undefined) {
    entries.push(...(await commitsOf(bench, revision, tip, published ? main : undefined, limit)));
  }
  if (revision.recordOid !== undefined) entries.push(...(await recordEntries(bench, revision, limit)));
  return entries.sort((a, b) => (a.at === b.at ? rank(b) - rank(a) : a.at < b.at ? 1 : -1)).slice(0, limit);
}

/** What can only have come after what, where two things have the same second. */
function rank({ action }: HistoryEntry): number {
  return ['push', 'init', 'copy', 'edit', ...ACTIONS].indexOf(action);
}

/** The approval commit, and which gates it let pass. */
async function approvalEntry(bench: Workbench, { commit, tip }: PackageRevision): Promise<HistoryEntry> {
  const entry = entryOf(await bench.git.readCommit(commit));
  const step = publishedRecordOf(tip.facts)?.steps.findLast(({ action }) => action === 'approve');
  if (step?.gates === undefined) return entry;
  const broken = publishedRecordOf(tip.facts)?.breakGlass === undefined ? '' : ' (break-glass)';
  return { ...entry, what: `${entry.what}, ${describeStep(step)}${broken}` };
}

/** The approvals before the last one, where it took several. */
function approvalEntries({ tip, commit }: PackageRevision): HistoryEntry[] {
  const approvals = publishedRecordOf(tip.facts)?.approvals ?? [];
  return approvals.slice(0, -1).map(({ at, subject, face }) => ({
    ...{ at, by: subject, face, action: 'approval', commit, reason: undefined },
    what: 'approval, with that of another person needed',
  }));
}

async function commitsOf(
  bench: Workbench,
  revision: PackageRevision,
  tip: Oid,
  main: Oid | undefined,
  limit: number,
): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  const published = new Set(
    bench.index
      .ofPackage(revision.key.package)
      .filter(isPublished)
      .map(({ tip }) => tip.tree),
  );
  let next: Oid | undefined = tip;
  while (next !== undefined && next !== main && entries.length < limit) {
    const [folder] = await bench.git.statObjects([`${next}:${revision.path}`]);
    const commit: Commit | undefined = folder === undefined ? undefined : await readCommit(bench, next);
    if (commit === undefined) break;
    const { annotations, action } = parseCommitMessage(commit.message);
    // A branch that was made with git begins where it differs from what was published, if it was not made with the package.
    if (action === undefined && next !== tip && published.has(folder?.oid)) break;
    // Commits of other packages lie before the point where this draft left the main branch.
    const foreign = annotations.length > 0 && !annotations.some((annotation) => annotation.package === revision.path);
    if (foreign || commit.parents.length === 0 || commit.parents.length > 1) break;
    entries.push(entryOf(commit));
    const mine = annotations.find((annotation) => annotation.package === revision.path);
    if (isCreation(mine?.task)) break;
    next = commit.parents[0];
  }
  return entries;
}

function isCreation(task: unknown): boolean {
  const type = (task as { type?: unknown } | undefined)?.type;
  return type === 'init' || type === 'clone' || type === 'edit' || type === 'upgrade';
}

/** Records tell of what made no commit on the draft: lifecycle steps, affirmed conditions, changed metadata. */
async function recordEntries(bench: Workbench, revision: PackageRevision, limit: number): Promise<HistoryEntry[]> {
  const entries = stepEntries(revision.record?.steps ?? [], revision.commit);
  let next = revision.recordOid;
  for (let read = 0; next !== undefined && read < limit; read++) {
    const commit = await readCommit(bench, next);
    const last = commit === undefined ? undefined : lastOf(commit.message);
    if (commit === undefined || last === undefined) break;
    if (last.made === undefined && !isStep(last.action)) {
      const what = commit.message.split('\n', 1)[0] ?? '';
      entries.push({
        at: last.at,
        by: last.by,
        face: last.face,
        action: last.action,
        what,
        reason: last.reason,
        commit: next,
      });
    }
    next = commit.parents[0];
  }
  return entries;
}

function lastOf(message: string): RevisionRecord['last'] {
  try {
    return parseRecord(message).record.last;
  } catch (error) {
    // A record that cannot be read ends the trail; the lifecycle steps are kept in every later one.
    if (isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

/** Lifecycle steps stand in every later record, and are taken from there. */
function isStep(action: string): boolean {
  return (ACTIONS as readonly string[]).includes(action);
}

/** A commit of a history; undefined where a shallow or pruned one ends. */
export async function readCommit(bench: Pick<Workbench, 'git'>, oid: Oid): Promise<Commit | undefined> {
  try {
    return await bench.git.readCommit(oid);
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

function entryOf(commit: Commit): HistoryEntry {
  const facts = parseCommitMessage(commit.message);
  return {
    at: timestamp(commit.committer.time),
    by: facts.actor ?? commit.author.name,
    face: facts.face ?? 'git',
    action: facts.action ?? 'push',
    what: commit.message.split('\n', 1)[0] ?? '',
    reason: facts.reason,
    commit: commit.oid,
  };
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
