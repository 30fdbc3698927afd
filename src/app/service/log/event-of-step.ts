import type { LogEntry } from './log-entry.ts';

/** The event of a lifecycle step. */
export interface StepEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** One CamelCase word for each step that a person may take, by where it leads. */
const REASONS: Readonly<Record<string, string>> = {
  Draft: 'Rejected',
  Proposed: 'Proposed',
  Published: 'Approved',
  DeletionProposed: 'DeletionProposed',
};

/**
 * The event for what a person did to a revision: a step of its life, or a condition that is True by now. Undefined for what was only found,
 * and for what controllers did, since they emit their own events.
 */
export function eventOfStep({ event, message, fields = {} }: LogEntry): StepEvent | undefined {
  const { by, from, status } = fields;
  // Always reported, whichever actor did it.
  if (event === 'BreakGlass') return { type: 'Warning', reason: event, message };
  if (typeof by !== 'string' || /^(controller|resolver):/.test(by)) return undefined;
  if (event === 'GateOpened') return { type: 'Normal', reason: event, message };
  if (event === 'Condition' && status === 'True') return { type: 'Normal', reason: 'ConditionMet', message };
  if (from === undefined) return undefined;
  const reason = from === 'DeletionProposed' ? 'DeletionRejected' : REASONS[event];
  return reason === undefined ? undefined : { type: 'Normal', reason, message };
}
