import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';
import { messageOf, SluiceError } from '../sluice-error.ts';

/** Longer than any pattern that a person writes, and short enough to be compiled in microseconds. */
const MAX_LENGTH = 1000;

const require = createRequire(import.meta.url);

/** A regular expression in the syntax of RE2, which takes time in proportion to the text. Throws InvalidInput that names `where`. */
export function linearRegex(pattern: string, where: string): RE2JS {
  if (pattern.length > MAX_LENGTH)
    throw new SluiceError('InvalidInput', `${where}: a regular expression has at most ${MAX_LENGTH} characters`);
  try {
    // Read when it is needed: it is large, and few configurations have a pattern that is no plain text.
    return (require('re2js') as typeof import('re2js')).RE2JS.compile(pattern);
  } catch (error) {
    throw new SluiceError('InvalidInput', `${where}: ${messageOf(error)}`, { cause: error });
  }
}
