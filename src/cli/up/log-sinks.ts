import type { LogEntry, LogSink } from '../../app/service/log/log-entry.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { printable } from '../output/printable.ts';
import type { Style, Terminal } from '../output/terminal.ts';

const EVENT_STYLES: Readonly<Record<string, Style>> = {
  Published: 'green',
  GateOpened: 'green',
  Delivered: 'green',
  Proposed: 'cyan',
  Draft: 'blue',
};

/** One JSON object a line. */
export function jsonSink(terminal: Terminal): LogSink {
  return ({ at, level, event, subject, message, fields }) => {
    const entry = { time: new Date(at).toISOString(), level, event, subject, message, ...fields };
    terminal.out.write(`${JSON.stringify(entry)}\n`);
  };
}

/** Prints each entry as one line with the time of day. */
export function textSink(terminal: Terminal): LogSink {
  return (entry) => terminal.line(`${timestamp(entry.at).slice(11, 19)}  ${line(terminal, entry)}`, namespaceOf(entry));
}

/** Prints each entry as one line with the seconds since `start` (milliseconds since the epoch). */
export function timelineSink(terminal: Terminal, start: number): LogSink {
  return (entry) => {
    const seconds = (Math.max(0, entry.at - start) / 1000).toFixed(2).padStart(6);
    terminal.line(`${terminal.style('dim', `${seconds}s`)}  ${line(terminal, entry)}`, namespaceOf(entry));
  };
}

function namespaceOf({ fields }: LogEntry): string | undefined {
  return typeof fields?.namespace === 'string' ? fields.namespace : undefined;
}

function line(terminal: Terminal, entry: LogEntry): string {
  const { level, event, subject, message } = entry;
  const style = level === 'warn' ? 'yellow' : EVENT_STYLES[event];
  const text = printable(message);
  return `${printable(subjectIn(namespaceOf(entry), subject)).padEnd(28)}  ${style === undefined ? text : terminal.style(style, text)}`;
}

/** The subject with its namespace, where commands need that; in a cluster it has it already. */
function subjectIn(namespace: string | undefined, subject: string): string {
  if (namespace === undefined || namespace === DEFAULT_NAMESPACE || subject.includes('/')) return subject;
  return subject.replace(/^(?:target )?/, `$&${namespace}/`);
}
