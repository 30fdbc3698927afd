import { expect, test } from 'vitest';
import { toOneLine } from './clean-text.ts';

test('lines of a server that only mark an error are left out', () => {
  const lines = ['error:', 'error: User permission denied for writing.', ' error: ', '', 'error: see the log'];
  expect(toOneLine(lines)).toBe('error: User permission denied for writing. / error: see the log');
});
