import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { type Gate, nextExpiry } from '../../src/package/model/gates/gates.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { type PackageRevision, packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { keyOf, keyText } from '../../src/resource/object/object.ts';
import { onPending, type PendingOptions } from './on-pending.ts';
import { annotationOf, obstacleTo } from './readiness.ts';

export const PROPOSAL_ACTOR = 'controller:proposal';

export interface ProposalOptions extends PendingOptions {
  /** Evaluates gates, verdicts and policy at one point in time. */
  readonly store: Pick<RevisionStore, 'evaluate' | 'find' | 'repositoryOf' | 'onPromotion'>;
}

/** Proposes marked drafts whose gates are open and whose resolvers have reported, and reports overdue gates. */
export function proposalController(options: ProposalOptions): ControllerOptions {
  const { store, clock } = options;
  const { client, events, controller } = onPending('proposal', PROPOSAL_ACTOR, options);
  return controller(reconcile);

  async function reconcile(object: Stored<PackageRevision>): Promise<ReconcileResult | undefined> {
    const evaluation = await evaluationOf(keyText(keyOf(object)));
    if (evaluation === undefined || store.repositoryOf(evaluation.revision).follows) return undefined;
    const mayPropose = object.spec.lifecycle === 'Draft' && isMarked(object, evaluation);
    if (mayPropose && (await propose(object, evaluation))) return undefined;
    return reportOverdue(object, evaluation);
  }

  async function evaluationOf(id: string): Promise<RevisionEvaluation | undefined> {
    try {
      return await store.evaluate(id);
    } catch (error) {
      // Deleted since it was read; its deletion wakes this controller too.
      if (isSluiceError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  /** True if it is proposed now. */
  async function propose(object: Stored<PackageRevision>, evaluation: RevisionEvaluation): Promise<boolean> {
    const obstacle = obstacleTo(evaluation, (gate) => !gate.approveOnly, options.applicableResolvers);
    if (obstacle !== undefined) {
      // Resolvers report after every change of content, so waiting for them needs no event.
      if (obstacle.reason !== 'NotSettled') events.record(object, 'Normal', 'NotProposed', obstacle.message);
      return false;
    }
    try {
      // The resourceVersion was read before the evaluation, so any change in between is a conflict: of commit, record or labels.
      const reason = openGates(evaluation, ' and the resolvers have reported');
      await client.update(
        packageRevisionKind,
        { ...object, spec: { ...object.spec, lifecycle: 'Proposed' } },
        { reason },
      );
    } catch (error) {
      if (isSluiceError(error, 'NotFound')) return false;
      if (!isSluiceError(error, 'Refused')) throw error;
      // Another controller or a user may have proposed it since it was read.
      if (!(await isDraftStill(object))) return false;
      events.record(object, 'Warning', 'NotProposed', error.message);
      return false;
    }
    const message = `proposed commit ${evaluation.revision.commit}: ${openGates(evaluation)}`;
    events.record(object, 'Normal', 'Proposed', message);
    return true;
  }

  async function isDraftStill({ metadata: { namespace, name } }: Stored<PackageRevision>): Promise<boolean> {
    const now = await evaluationOf(keyText({ namespace, name }));
    return now?.revision.lifecycle === 'Draft';
  }

  /** Reports closed gates whose deadline has passed, and requests a reconciliation at the next deadline. */
  function reportOverdue(
    object: PackageRevision,
    { gates, policy, revision }: RevisionEvaluation,
  ): ReconcileResult | undefined {
    const created = Date.parse(object.metadata.creationTimestamp ?? '') || revision.tip.time;
    let next = Number.POSITIVE_INFINITY;
    for (const gate of gates) {
      const limit = policy.gateDeadlines[gate.type];
      if (gate.state === 'Open' || limit === undefined) continue;
      const due = closedSince(gate, created, revision.tip.time) + limit;
      if (due > clock.now()) next = Math.min(next, due);
      else
        events.record(object, 'Warning', 'GateOverdue', `gate ${gate.type} is overdue: ${gate.explanation}`, gate.type);
    }
    for (const { type, state, explanation } of gates) {
      if (state === 'Expired')
        events.record(object, 'Warning', 'GateExpired', `gate ${type} is closed: ${explanation}`, `expired ${type}`);
    }
    const expiry = nextExpiry(gates) ?? Number.POSITIVE_INFINITY;
    if (expiry < next) return { requeueAfter: expiry - clock.now(), reason: 'a condition expires' };
    if (next === Number.POSITIVE_INFINITY) return undefined;
    return { requeueAfter: next - clock.now(), reason: 'the deadline of a closed gate' };
  }
}

/** Summary of the open gates, with `more`, and the gates that an approval waits for in the words of `sluice why`. */
function openGates({ gates }: RevisionEvaluation, more = ''): string {
  const closed = gates.filter(({ state }) => state !== 'Open').map(({ type }) => type);
  if (closed.length === 0) return `all gates are open${more}`;
  return `all gates of a proposal are open${more}; an approval waits for ${closed.join(', ')}`;
}

function isMarked(object: PackageRevision, { policy }: RevisionEvaluation): boolean {
  return policy.autoPropose || annotationOf(object, AUTO_LIFECYCLE_ANNOTATION, policy) === 'true';
}

/** The time since which a gate is closed, as far as known: a stale verdict became stale with the last commit at the latest. */
function closedSince(gate: Gate, created: number, lastCommit: number): number {
  if (gate.state === 'Missing') return created;
  const since = gate.state === 'NotTrue' && gate.since !== undefined ? Date.parse(gate.since) : lastCommit;
  return Number.isNaN(since) ? lastCommit : since;
}
