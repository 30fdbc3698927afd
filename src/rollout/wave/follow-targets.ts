import type { Candidate, Observations, TargetObservation } from './observation.ts';
import type { TargetOrder, TargetRecord, WaveRecord } from './plan-state.ts';
import type { StateEditor } from './transition.ts';
import { isApproved } from './wave-members.ts';
import type { PlanSpec } from './wave-spec.ts';

const UNPUBLISHED: ReadonlySet<string> = new Set(['Pending', 'Assigned', 'Approving', 'Failed', 'Unreachable']);

/** A target that is only being waited for needs no reason for so long. */
const USUAL_MS = 60_000;

function isUnpublished({ phase, published }: TargetRecord): boolean {
  return published === undefined && UNPUBLISHED.has(phase);
}

/** Records targets that join, change or leave. */
export function followCandidates(editor: StateEditor, { candidates, isUnknown, of }: Observations): void {
  if (candidates === undefined) return;
  const { waves } = editor.state;
  const joined = waves.length === 0 ? 0 : editor.state.joins + 1;
  for (const candidate of candidates.values()) {
    const known = editor.state.targets.get(candidate.id);
    if (known === undefined) join(editor, candidate, { joined, key: candidate.key });
    else if (known.phase === 'Skipped') rejoin(editor, known, candidate, joined);
    // Another revision of a package that a user has published.
    else if (known.phase === 'Ahead' && isOther(known, candidate)) join(editor, candidate, known.order);
    else if (isUnpublished(known) && isOther(known, candidate))
      editor.apply({ type: 'Retargeted', id: known.id, revision: candidate.revision, commit: candidate.commit });
  }
  for (const target of editor.state.targets.values()) {
    if (candidates.has(target.id) || isUnknown(target.id)) continue;
    const { revision } = of(target);
    if (!isUnpublished(target)) continue;
    const isDeselected = revision?.state === 'Proposed';
    if (target.phase === 'Pending' && revision?.state === 'Published')
      editor.apply({ type: 'Ahead', id: target.id, published: revision.number });
    else if (target.phase === 'Pending' || (isDeselected && !isApproved(revision)))
      editor.apply({
        ...{ type: 'Skipped', id: target.id, reason: 'it is no Proposed revision that the plan selects any more' },
        ...(isDeselected ? { isDeselected } : {}),
      });
    else if (revision?.state === 'Gone')
      editor.apply({
        type: 'Skipped',
        id: target.id,
        reason: 'its revision was rejected or deleted before it was approved',
      });
  }
}

function join(editor: StateEditor, { id, revision, commit }: Candidate, order: TargetOrder): void {
  editor.apply({ type: 'Joined', id, order, revision, commit });
}

/**
 * A skipped target with another commit joins as a new one. With the same one it has its place again if its selection, or its repository, was
 * missing for a while, or if its approval was never intended. What was rejected after that was rejected on purpose.
 */
function rejoin(editor: StateEditor, known: TargetRecord, candidate: Candidate, joined: number): void {
  if (isOther(known, candidate)) join(editor, candidate, { joined, key: candidate.key });
  else if (known.attempt === 0) join(editor, candidate, { joined: known.order.joined, key: candidate.key });
}

function isOther(target: TargetRecord, candidate: Candidate): boolean {
  return target.revision !== candidate.revision || target.commit !== candidate.commit;
}

/** Records what became of approvals: it must be known also of plans that do nothing any more. */
export function followApprovals(editor: StateEditor, { of }: Observations): void {
  for (const target of editor.state.targets.values()) {
    if (target.phase === 'Pending' || !isUnpublished(target)) continue;
    const { revision } = of(target);
    if (revision?.state === 'Published') editor.apply({ type: 'Approved', id: target.id, published: revision.number });
  }
}

/** Records results: of approvals that wait, of verifications, and of deadlines. */
export function followResults(editor: StateEditor, spec: PlanSpec, { of }: Observations): void {
  const open = new Map(
    editor.state.waves.filter((wave) => wave.completedMs === undefined).map((one) => [one.name, one]),
  );
  for (const target of editor.state.targets.values()) {
    const observed = of(target);
    if (target.published === undefined) followRefusal(editor, spec, target, observed);
    else followVerification(editor, spec, target, observed, open.get(target.wave ?? ''));
  }
}

function followRefusal(
  editor: StateEditor,
  { progressDeadlineMs }: PlanSpec,
  target: TargetRecord,
  { refusal, failure }: TargetObservation,
): void {
  if (target.phase !== 'Approving') return;
  const { id, reason, sinceMs } = target;
  if (refusal !== undefined || reason !== undefined) {
    if (refusal !== reason) editor.apply({ type: 'Blocked', id, reason: refusal });
    return;
  }
  if (editor.state.elapsedMs - sinceMs < progressDeadlineMs) return;
  if (failure === undefined) return;
  editor.apply({ type: 'Unreachable', id, reason: `it was not approved within the deadline: ${failure}` });
}

function followVerification(
  editor: StateEditor,
  { progressDeadlineMs }: PlanSpec,
  { id, phase, sinceMs, reason }: TargetRecord,
  { verification }: TargetObservation,
  wave: WaveRecord | undefined,
): void {
  if (verification === undefined) return;
  const { result } = verification;
  if (phase === 'Verified') {
    // Of a wave that is completed the next ones decide, by their own targets.
    if (wave !== undefined && (result === 'Degraded' || result === 'Failed'))
      editor.apply({ type: 'Regressed', id, reason: verification.message });
    return;
  }
  if (phase !== 'Approved' && phase !== 'Failed' && phase !== 'Unreachable') return;
  if (result === 'Verified') editor.apply({ type: 'Verified', id });
  else if (phase === 'Approved') {
    const waitedMs = editor.state.elapsedMs - sinceMs;
    const isDue = waitedMs >= progressDeadlineMs;
    if (result === 'Failed') editor.apply({ type: 'Failed', id, reason: verification.message });
    else if (isDue) {
      const type = result === 'Unreachable' ? 'Unreachable' : 'Failed';
      editor.apply({ type, id, reason: `it was not verified within the deadline: ${verification.message}` });
    } else if (
      (result !== 'Pending' || reason !== undefined || waitedMs >= USUAL_MS) &&
      reason !== verification.message
    )
      // A target that is waited for as usual needs no reason, unless it replaces one that no longer holds.
      editor.apply({ type: 'Unverified', id, reason: verification.message });
  }
}
