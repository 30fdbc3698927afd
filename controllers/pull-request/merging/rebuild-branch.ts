import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Source } from '../../../src/controller/source.ts';
import type { Check, PullRequest } from '../../../src/forge/forge.ts';
import type { Mergeability } from '../../../src/forge/forge-merging.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { mergeBase } from '../../../src/git/objects/merge-base.ts';
import { REVIEW_ACTOR, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { revisionId } from '../../../src/package/model/revision/package-revision.ts';
import { decisionOf } from '../../../src/package/store/approve-by-merge.ts';
import type { RevisionEvaluation } from '../../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { keyOf, type ObjectKey } from '../../../src/resource/object/object.ts';
import { READY_CHECK } from '../checks/checks.ts';
import { foreignFilesOf } from '../checks/host-merge-rules.ts';
import type { ShownProposals, ShownPull } from '../shown-proposals.ts';

/** Until what the host computes of a merge is read again, and until it counts as a conflict. */
const UNKNOWN_RETRY_MS = 5000;
export const UNKNOWN_MS = 60_000;

/** What decides whether the proposed branch is rebuilt on the main branch. */
export interface RebuildFacts {
  /** A merge of the pull request publishes the proposal, and Sluice has no reason against it. */
  readonly isReady: boolean;
  /** Merge queues test the present head. */
  readonly isQueued: boolean;
  readonly isOpen: boolean;
  /** The proposed branch was last based on the head of the main branch. */
  readonly isUpToDate: boolean;
  /** Its merge would make another package of the proposed one and that of the main branch: whatever the host states, this one must not be merged. */
  readonly isCombining?: boolean;
  /** Undefined where it was not read. */
  readonly mergeability?: Mergeability;
}

/** `ask` reads the mergeability: it is of no interest otherwise. */
export function decideRebuild({ mergeability, ...facts }: RebuildFacts): 'ask' | 'rebuild' | 'leave' {
  if (!facts.isReady || facts.isQueued || !facts.isOpen || facts.isUpToDate) return 'leave';
  if (facts.isCombining === true) return 'rebuild';
  if (mergeability === undefined) return 'ask';
  return mergeability === 'conflict' || mergeability === 'behind' ? 'rebuild' : 'leave';
}

export interface RebuildContext {
  readonly store: Pick<RevisionStore, 'change' | 'repositoryOf'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Merges the main branch into the proposed one, if the host requires that for the merge by which the proposal is to be published. Reads what the host
 * states once for each head of both branches. Of a proposal that Sluice merges itself the host states it when it refuses that. Returns
 * `rebuilt`, after which the new head wakes the controller, or when the host is to be read again, since it has not found out yet.
 */
export async function rebuildBranch(
  context: RebuildContext,
  evaluation: RevisionEvaluation,
  { publishOn }: ReviewPolicy,
  {
    pull,
    checks,
    entry,
    isCombining,
  }: {
    readonly pull: PullRequest;
    /** Without what a rebuild resolves. */
    readonly checks: readonly Check[];
    readonly entry: ShownPull;
    readonly isCombining: boolean;
  },
): Promise<'rebuilt' | ReconcileResult | undefined> {
  const { store } = context;
  const { revision, record, conflict } = evaluation;
  const head = store.repositoryOf(revision).index.mainHead;
  const ready = checks.find(({ name }) => name === READY_CHECK);
  const isByUser = publishOn === 'merge';
  entry.awaitsMerge = isByUser
    ? conflict === undefined && ready?.state === 'success'
    : decisionOf(evaluation, revision.namespace) !== undefined;
  const facts = {
    isReady: isByUser && entry.awaitsMerge,
    isQueued: entry.pulls.queued.has(entry.number),
    isOpen: pull.state === 'open',
    isUpToDate: head === undefined || record.base?.commit === head,
    isCombining,
  };
  const decided = await readRebuild(context, facts, `${revision.commit} ${head}`, entry);
  if (decided !== 'rebuild') return decided;
  return (await rebuildOnMain(context, evaluation)) ? 'rebuilt' : undefined;
}

/**
 * Decides by what the host states of a merge, which is read for each head of both branches, and once more a minute later, since it can be that of an
 * earlier state. Returns undefined if the branch stays as it is, or when the host is to be read again.
 */
export async function readRebuild(
  { clock, signal }: Pick<RebuildContext, 'clock' | 'signal'>,
  facts: RebuildFacts,
  heads: string,
  entry: ShownPull,
): Promise<'rebuild' | ReconcileResult | undefined> {
  const { pulls, number } = entry;
  const decided = decideRebuild(facts);
  if (decided !== 'ask') return decided === 'rebuild' ? 'rebuild' : undefined;
  const before = entry.mergeableAt;
  const waitMs = before === undefined || before.isFinal ? 0 : before.readMs + UNKNOWN_MS - clock.monotonic();
  if (before?.heads === heads && (before.isFinal || waitMs > 0)) return before.isFinal ? undefined : again(waitMs);
  const stated = await pulls.forge.mergeability(number, signal);
  if (stated === 'behind') pulls.upToDate.noteBehind();
  if (stated === 'queued') pulls.queued.note(number, true);
  const now = clock.monotonic();
  if (stated !== 'unknown' || entry.unknown?.heads !== heads) entry.unknown = { heads, sinceMs: now };
  const unknownMs = now - entry.unknown.sinceMs;
  // Some hosts state no more of a conflict.
  const mergeability = stated === 'unknown' && unknownMs >= UNKNOWN_MS ? 'conflict' : stated;
  if (mergeability === 'unknown') return { requeueAfter: UNKNOWN_RETRY_MS, reason: 'the host computes the merge' };
  // Once for each head of the branch, however often the main branch moves meanwhile.
  const [head] = heads.split(' ');
  const isFinal = before?.isFinal === false && before.heads.split(' ')[0] === head && waitMs <= 0;
  entry.mergeableAt = { heads, readMs: now, isFinal };
  if (decideRebuild({ ...facts, mergeability }) === 'rebuild') return 'rebuild';
  return isFinal ? undefined : again(UNKNOWN_MS);
}

function again(requeueAfter: number): ReconcileResult {
  return { requeueAfter, reason: 'what the host states of the merge is read once more' };
}

/**
 * Merges the main branch, as it was last fetched, into the proposed one, with the package as it was proposed. Reviews and approvals stay: they are
 * bound to the package. Returns false if there is nothing to merge, the package itself conflicts, or the branch has other files: the main branch can have
 * moved since those were looked for.
 */
export async function rebuildOnMain(
  { store }: Pick<RebuildContext, 'store'>,
  evaluation: Pick<RevisionEvaluation, 'revision' | 'record' | 'conflict'>,
): Promise<boolean> {
  const { revision, conflict } = evaluation;
  if (conflict !== undefined || (await foreignFilesOf(store.repositoryOf(revision), evaluation)) !== undefined)
    return false;
  const by = { actor: { name: REVIEW_ACTOR }, face: 'controller' } as const;
  const change = { rebase: 'keep', expectedCommit: revision.commit } as const;
  const { commit } = await store.change(revisionId(revision), change, by);
  return commit !== revision.commit;
}

/**
 * Bases a proposed branch on the main branch that contains it, as a user merged it when a merge did not publish: hosts open no pull request for a
 * branch without commits of its own. Returns true if the branch has one now.
 */
export async function rebuildMerged(
  context: Pick<RebuildContext, 'store'>,
  evaluation: Parameters<typeof rebuildOnMain>[1],
): Promise<boolean> {
  const { git, index } = context.store.repositoryOf(evaluation.revision);
  const { commit } = evaluation.revision;
  if (index.mainHead === undefined || (await mergeBase(git, commit, index.mainHead)) !== commit) return false;
  return rebuildOnMain(context, evaluation);
}

/**
 * Wakes for the proposals that a merge is to publish when the main branch moves, if the host requires up-to-date branches: it reports that of none by
 * itself. Where it does not, nothing is read of the pull requests.
 */
export function outdatedProposals(shown: Pick<ShownProposals, 'inRepository'>): Source<ObjectKey> {
  return {
    start({ informer, enqueue, track }) {
      return informer(repositoryKind).addHandler((event) => {
        if (event.type !== 'update') return;
        const { object, old } = event;
        const before = old.status?.gitCommitHash;
        if (before === undefined || object.status?.gitCommitHash === before) return;
        const waiting = shown.inRepository(keyOf(object)).filter(({ pull }) => pull.awaitsMerge === true);
        for (const pulls of new Set(waiting.map(({ pull }) => pull.pulls)))
          track(async (signal) => {
            if (!(await pulls.upToDate.read(signal))) return;
            for (const { key, pull } of waiting) if (pull.pulls === pulls) enqueue(key);
          });
      });
    },
  };
}
