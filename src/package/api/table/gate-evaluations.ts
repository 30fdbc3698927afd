import { Limiter } from '../../../foundation/concurrency/limiter.ts';
import { messageOf } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { nextExpiry } from '../../model/gates/gates.ts';
import { repositoryIdOf } from '../../model/revision/package-revision.ts';
import { isUnread } from '../../store/evaluate-revision.ts';
import type { ConcernedRevisions } from '../../store/policies/concerned-revisions.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import type { ApprovalHolds } from '../../store/unmet-rules.ts';
import { approvalCondition, hasApprovalCondition } from '../objects/approval-condition.ts';
import {
  evaluatedCondition,
  isUnpublished,
  mayConflict,
  notEvaluated,
  requiresGates,
  treeOnMain,
} from '../objects/ready-condition.ts';
import type { Readiness, RevisionEntry } from '../objects/revision-entry.ts';

/** Evaluations at a time: each reads a package, and requests go first. */
const MAX_EVALUATIONS = 2;
const SLOW_AFTER_MS = 1000;

interface Evaluation {
  readonly etag: string;
  /** Set when a policy, a freeze or a plan changed that concerns it. */
  isOutdated: boolean;
  over: Promise<void>;
}

export interface GateEvaluationsOptions {
  readonly store: RevisionStore;
  readonly clock: Clock;
  /** Default: no plan holds a revision. */
  readonly holds?: ApprovalHolds | undefined;
  /** The entry of an id as it is now. */
  find(id: string): RevisionEntry | undefined;
  /** Stores an evaluation of the current entry. */
  onEvaluated(id: string, ready: Readiness): void;
}

/**
 * Evaluates the gates and the rules for approvals of pending revisions for their conditions `sluice.dev/Ready` and
 * `sluice.dev/ApprovalAllowed`: when a client reads one object, after each write, and,
 * once started, whenever a revision, a policy, a freeze or the hold of a plan changes, when a gate expires, and when a rule begins or ends to block.
 */
export class GateEvaluations {
  readonly #options: GateEvaluationsOptions;
  readonly #limiter: Limiter;
  /** Evaluations under way, by the id, with the state that each is of. */
  readonly #running = new Map<string, Evaluation>();
  /** Cancels the timer of an id. */
  readonly #timers = new Map<string, () => void>();
  /** Ids of pending revisions by the id of their repository: a change must not cost what is published. */
  readonly #pending = new Map<string, Set<string>>();
  #isStarted = false;

  constructor(options: GateEvaluationsOptions) {
    this.#options = options;
    this.#limiter = new Limiter({
      ...{ maxRunning: MAX_EVALUATIONS, slowAfterMs: SLOW_AFTER_MS, clock: options.clock },
    });
  }

  start(entries: Iterable<[string, RevisionEntry]>): void {
    this.#isStarted = true;
    for (const [id, entry] of entries) this.noteChange(id, entry);
  }

  /** Evaluates a changed revision in the background, if it is started. */
  noteChange(id: string, entry: RevisionEntry): void {
    this.#forgetTimer(id);
    const repository = repositoryIdOf(entry.revision);
    if (!isUnpublished(entry.revision)) this.#removePending(id, repository);
    else {
      const ids = this.#pending.get(repository) ?? new Set();
      this.#pending.set(repository, ids.add(id));
    }
    if (this.#isStarted && this.#isDue(entry)) void this.#limiter.run(() => this.evaluate(id));
  }

  /** Forgets a deleted revision. */
  drop(id: string, { revision }: RevisionEntry): void {
    this.#forgetTimer(id);
    this.#removePending(id, repositoryIdOf(revision));
  }

  /** Evaluates the pending revisions again that a changed policy, freeze or plan concerns. What is shown stays until then. */
  repeat(concerned: ConcernedRevisions): void {
    for (const [repository, isConcerned] of concerned)
      for (const id of this.#pending.get(repository) ?? []) {
        const entry = this.#options.find(id);
        if (entry === undefined || !isConcerned(entry.revision)) continue;
        // One that is under way may have read the policies of before.
        const running = this.#running.get(id);
        if (running !== undefined) running.isOutdated = true;
        const { until: _ended, ...shown } = entry.ready;
        entry.noteReady({ ...shown, isCurrent: false });
        this.noteChange(id, entry);
      }
  }

  #forgetTimer(id: string): void {
    this.#timers.get(id)?.();
    this.#timers.delete(id);
  }

  #removePending(id: string, repository: string): void {
    const ids = this.#pending.get(repository);
    if (ids?.delete(id) === true && ids.size === 0) this.#pending.delete(repository);
  }

  /** Evaluates a pending revision again: the package changed on the main branch. */
  noteMain(id: string, entry: RevisionEntry): void {
    if (!isUnpublished(entry.revision)) return;
    entry.noteReady({ condition: entry.ready.condition, isCurrent: false });
    this.#running.delete(id);
    this.noteChange(id, entry);
  }

  /** Resolves when the gates of a revision, as it is now, are evaluated; at once where they are, or there are none. */
  async evaluate(id: string): Promise<void> {
    const entry = this.#options.find(id);
    if (entry === undefined || !this.#isDue(entry)) return;
    const { etag } = entry.revision;
    const running = this.#running.get(id);
    if (running?.etag === etag && !running.isOutdated) return running.over;
    const evaluation: Evaluation = { etag, isOutdated: false, over: Promise.resolve() };
    this.#running.set(id, evaluation);
    evaluation.over = this.#evaluate(id, evaluation).finally(() => {
      if (this.#running.get(id) === evaluation) this.#running.delete(id);
    });
    return evaluation.over;
  }

  #isDue({ revision, repository, ready }: RevisionEntry): boolean {
    if (!isUnpublished(revision)) return false;
    if (ready.isCurrent) return ready.until !== undefined && ready.until <= this.#options.clock.now();
    if (ready.condition !== undefined || ready.approval !== undefined || requiresGates(revision, repository))
      return true;
    if (mayConflict(revision, repository)) return true;
    const { clock, holds } = this.#options;
    const mayBeHeld = revision.lifecycle === 'Proposed' && holds?.mayHold(revision) === true;
    return hasApprovalCondition(revision, repository.policyFor(revision), clock.now(), mayBeHeld);
  }

  async #evaluate(id: string, self: Evaluation): Promise<void> {
    const { store, clock, holds, onEvaluated: show, find } = this.#options;
    const { etag } = self;
    const entry = find(id);
    const main = entry && treeOnMain(entry.revision, entry.repository);
    let ready: Readiness;
    try {
      const evaluation = await store.evaluate(id);
      const { gates, revision, content, conflict } = evaluation;
      // It changed meanwhile, which is evaluated for itself.
      if (revision.etag !== etag) return;
      // Not of a Kptfile alone, which is shown as a problem of the revision.
      const unread = isUnread(evaluation) ? revision.problem : undefined;
      const siblings = store.list({ repository: repositoryIdOf(revision), package: revision.key.package });
      const hold = revision.lifecycle === 'Proposed' ? await holds?.holdOf(revision) : undefined;
      const approval = approvalCondition(evaluation, siblings, hold);
      const ends = [nextExpiry(gates), approval?.until].filter((end) => end !== undefined);
      ready = {
        condition: unread === undefined ? evaluatedCondition(gates, content.files, conflict) : notEvaluated(unread),
        isCurrent: true,
        ...(approval === undefined ? {} : { approval: approval.condition }),
        ...(ends.length === 0 ? {} : { until: Math.min(...ends) }),
      };
    } catch (error) {
      // In the background no caller gets the error; the condition reports it.
      ready = { condition: notEvaluated(messageOf(error)), isCurrent: true };
    }
    // Evaluations of a closed repository are dropped.
    if (store.find(id)?.etag !== etag || find(id)?.revision.etag !== etag || self.isOutdated) return;
    if (entry !== undefined && treeOnMain(entry.revision, entry.repository) !== main) return;
    show(id, ready);
    if (!this.#isStarted || ready.until === undefined) return;
    this.#forgetTimer(id);
    const repeat = () => void this.#limiter.run(() => this.evaluate(id));
    this.#timers.set(id, clock.schedule(Math.max(1, ready.until - clock.now()), repeat));
  }
}
