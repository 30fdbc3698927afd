import type { Event } from '../../../resource/kinds/core/event.ts';
import type { LogEntry } from './log-entry.ts';

/** Reasons that are not logged: the change of the revision itself, or else `sluice why`, reports them better. */
const UNLOGGED_REASONS: ReadonlySet<string> = new Set([
  ...['Proposed', 'Approved', 'Resolved', 'NotProposed', 'NotApproved'],
  // One line reports it, not one for each repository.
  'CanSign',
  ...['Rejected', 'DeletionProposed', 'DeletionRejected', 'GateOpened', 'ConditionMet'],
]);

/**
 * Converts an event of a controller to a log line; undefined if the log has it already. `now` in milliseconds. With `namespaced`, the line
 * names the object with its namespace: a cluster has several.
 */
export function narrateEvent(event: Event, now: number, namespaced = false): LogEntry | undefined {
  const { involvedObject, reason, message, type } = event;
  if ((type === 'Normal' && UNLOGGED_REASONS.has(reason)) || reason === 'BreakGlass') return undefined;
  const { kind, namespace = '' } = involvedObject;
  // The service logs these itself, also those from before its start.
  if (kind === 'Freeze') return undefined;
  const name = `${namespaced && namespace !== '' ? `${namespace}/` : ''}${involvedObject.name ?? ''}`;
  const isTarget = kind === 'DeliveryTarget';
  return {
    at: now,
    level: type === 'Warning' ? 'warn' : 'info',
    event: reason,
    subject: isTarget ? `target ${name}` : name,
    message: reason === 'Delivered' ? `delivered in ${message}` : `${reason}: ${message}`,
    fields: { kind, ...(namespace === '' ? {} : { namespace }), component: event.reportingComponent },
  };
}

/**
 * Returns a function that is true for a warning that an earlier process reported and that this process, begun at `startedAt`, reports
 * for the first time: controllers evaluate everything again after a start, so that this is no change.
 */
export function repeatedWarnings(startedAt: number): (event: Event) => boolean {
  const seen = new Set<string>();
  return ({ metadata, type, firstTimestamp }) => {
    const isOld = type === 'Warning' && Date.parse(firstTimestamp ?? '') < startedAt;
    const id = `${metadata.namespace}/${metadata.name}`;
    if (!isOld || seen.has(id)) return false;
    seen.add(id);
    return true;
  };
}
