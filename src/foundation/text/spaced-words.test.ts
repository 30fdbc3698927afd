import { expect, test } from 'vitest';
import { spacedWords } from './spaced-words.ts';

test.each([
  ['NotRolledBack', 'Not rolled back'],
  ['Synced', 'Synced'],
  ['UnknownCRDVersion', 'Unknown CRD version'],
  ['HTTPError', 'HTTP error'],
  ['v2 is away', 'v2 is away'],
  ['example.com/Tested', 'example.com/Tested'],
  ['', ''],
])('%s is %s', (code, words) => {
  expect(spacedWords(code)).toBe(words);
});
