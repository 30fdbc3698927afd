import { ERROR_CODES, isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import type { Invocation } from './invocation.ts';
import { printableLines } from './printable.ts';

/** Prints an error on stderr; returns the exit code. The stack is for SLUICE_DEBUG=1 only. */
export function reportError(error: unknown, { terminal, environment }: Invocation): number {
  const debug = environment.SLUICE_DEBUG === '1';
  const expected = isExpected(error);
  const label = terminal.style('red', 'error:', terminal.err);
  terminal.note(`${label} ${printableLines(messageOf(error))}`);
  if (debug && error instanceof Error) terminal.note(printableLines(stackOf(error)));
  else if (!expected) terminal.note('This is a defect of sluice. SLUICE_DEBUG=1 shows where it happened.');
  return exitCodeOf(error);
}

export function exitCodeOf(error: unknown): number {
  return isSluiceError(error) ? ERROR_CODES[error.code].exit : 1;
}

/** True for what can go wrong without a defect: errors of the domain, of the system, and of Kptfiles that cannot be edited. */
export function isExpected(error: unknown): boolean {
  if (isSluiceError(error)) return error.code !== 'Internal';
  if (!(error instanceof Error)) return false;
  // By its name, since importing the class would cost every command the time to load the schema.
  return error.name === 'KptfileEditError' || ('syscall' in error && 'code' in error);
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}
