import { createHash } from 'node:crypto';
import { type Event, lastSeen } from '../../src/resource/kinds/core/event.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { redact } from './redact.ts';

const MAX_MESSAGE_CHARACTERS = 1024;
const MAX_WORD_CHARACTERS = 253;

/** An event as it leaves Sluice: bounded, printable, and without credentials. */
export interface Message {
  /** The same for every attempt to send the same occurrence of an event. */
  readonly id: string;
  /** RFC 3339, of the last occurrence. */
  readonly time: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  /** The component that reported the event. */
  readonly source: string;
}

/** Identifies one occurrence of an event. */
export function occurrenceId(event: Stored<Event>): string {
  const { uid } = event.metadata;
  const count = event.series?.count ?? event.count ?? 1;
  return createHash('sha256')
    .update(JSON.stringify([uid, count, lastSeen(event)]))
    .digest('hex')
    .slice(0, 16);
}

/** Milliseconds since the epoch of the last occurrence. */
export function occurredAt(event: Stored<Event>): number {
  const time = Date.parse(lastSeen(event) ?? '');
  return Number.isNaN(time) ? Date.parse(event.metadata.creationTimestamp) : time;
}

export function messageOfEvent(event: Stored<Event>): Message {
  const { involvedObject, type, reason, message, source, reportingComponent } = event;
  const word = (text: string | undefined) => redact(text ?? '', MAX_WORD_CHARACTERS);
  return {
    id: occurrenceId(event),
    time: new Date(occurredAt(event)).toISOString(),
    type,
    reason: word(reason),
    message: redact(message, MAX_MESSAGE_CHARACTERS),
    count: event.series?.count ?? event.count ?? 1,
    object: {
      apiVersion: word(involvedObject.apiVersion),
      kind: word(involvedObject.kind),
      namespace: word(involvedObject.namespace),
      name: word(involvedObject.name),
    },
    source: word(reportingComponent || source?.component),
  };
}
