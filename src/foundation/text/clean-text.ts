import { shorten } from './shorten.ts';

const MAX_CHARACTERS = 2000;

/**
 * Makes foreign text safe for a message: no user or password in URLs, no control characters, no marks that reorder text, no half of a surrogate pair,
 * bounded.
 */
export function cleanText(text: string, maxCharacters = MAX_CHARACTERS): string {
  const clean = text
    .toWellFormed()
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, '')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '')
    .trim();
  return shorten(clean, maxCharacters);
}

/** Joins lines that a server wrote for users to one line for a message. */
export function toOneLine(lines: readonly string[]): string {
  const line = lines
    .map((one) => cleanText(one))
    // Hosts mark each line as an error, also empty ones.
    .filter((one) => one !== '' && !/^(?:error|fatal|warning):$/.test(one))
    .join(' / ');
  return shorten(line, MAX_CHARACTERS);
}
