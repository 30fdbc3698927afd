import { expect, test } from 'vitest';
import { keepFormat } from './keep-format.ts';

test('a document may have more lines than a call has arguments', () => {
  const lines = 'a\n'.repeat(200_000);
  const merged = keepFormat(`${lines}# note\nb\nc\n`, `${lines}b\nc\n`, `${lines}b\nd\n`);
  expect(merged === `${lines}# note\nb\nd\n`).toBe(true);
});
