import { SluiceError } from '../../foundation/sluice-error.ts';

/**
 * Splits a command line into words at white space, with single quotes, double quotes and backslashes as in shells, and no other
 * shell syntax. Throws InvalidInput for an unterminated quote and for an empty command.
 */
export function splitCommand(command: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < command.length; at += 1) {
    const char = command.charAt(at);
    if (char === '\0') throw unreadable(command, 'it contains a NUL character');
    if (quote === undefined && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === quote) quote = undefined;
    else if (quote === undefined && (char === "'" || char === '"')) {
      quote = char;
      word ??= '';
    } else if (char === '\\' && quote !== "'" && escapes(command.charAt(at + 1), quote)) {
      at += 1;
      word = (word ?? '') + command.charAt(at);
    } else word = (word ?? '') + char;
  }
  if (quote !== undefined) throw unreadable(command, `a ${quote} is not closed`);
  if (word !== undefined) words.push(word);
  if (words.length === 0 || words[0] === '') throw unreadable(command, 'it names no program');
  return words;
}

/** Between double quotes a backslash is literal, except before a quote or another one. */
function escapes(next: string, quote: string | undefined): boolean {
  return quote === undefined ? next !== '' : next === '"' || next === '\\';
}

function unreadable(command: string, why: string): SluiceError {
  return new SluiceError('InvalidInput', `exec ${JSON.stringify(command)} cannot be read: ${why}`);
}
