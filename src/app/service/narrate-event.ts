import type { Event } from '../../resource/kinds/core/event.ts';
import type { LogEntry } from './log-entry.ts';

/** Reasons that are not logged: the change of the revision itself, or else `sluice why`, reports them better. */
const UNLOGGED_REASONS: ReadonlySet<string> = new Set([
  ...['Proposed', 'Approved', 'Resolved', 'NotProposed', 'NotApproved'],
  ...['Rejected', 'DeletionProposed', 'DeletionRejected', 'GateOpened', 'ConditionMet'],
]);

/** Converts an event of a controller to a log line; undefined if the log has it already. `now` in milliseconds. */
export function narrateEvent(event: Event, now: number): LogEntry | undefined {
  const { involvedObject, reason, message, type } = event;
  if ((type === 'Normal' && UNLOGGED_REASONS.has(reason)) || reason === 'BreakGlass') return undefined;
  const { kind, name = '' } = involvedObject;
  const isTarget = kind === 'DeliveryTarget';
  return {
    at: now,
    level: type === 'Warning' ? 'warn' : 'info',
    event: reason,
    subject: isTarget ? `target ${name}` : name,
    message: reason === 'Delivered' ? `delivered in ${message}` : `${reason}: ${message}`,
    fields: { kind, component: event.reportingComponent },
  };
}
