import type { PlanState, TargetRecord } from './plan-state.ts';

/**
 * The state from its records. Those of targets are written before that of the plan, and approvals are requested after both: an assignment to
 * a wave that the plan has not recorded was not acted upon, and does not count.
 */
export function restoreState(plan: Omit<PlanState, 'targets'>, records: Iterable<TargetRecord>): PlanState {
  const started = new Set(plan.waves.map(({ name }) => name));
  const targets = new Map<string, TargetRecord>();
  let { elapsedMs, joins } = plan;
  for (const record of records) {
    targets.set(record.id, record.wave === undefined || started.has(record.wave) ? record : unassigned(record));
    // The time of the plan must not go back.
    elapsedMs = Math.max(elapsedMs, record.sinceMs);
    joins = Math.max(joins, record.order.joined);
  }
  return { ...plan, elapsedMs, joins, targets };
}

function unassigned({ wave: _unrecorded, phase, ...record }: TargetRecord): TargetRecord {
  if (phase === 'Skipped') return { ...record, phase };
  return { ...record, phase: record.published === undefined ? 'Pending' : 'Ahead' };
}
