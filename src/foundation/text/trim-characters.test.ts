import fc from 'fast-check';
import { expect, test } from 'vitest';
import { trimEndOf, trimEndsOf } from './trim-characters.ts';

test('removes what the regular expressions remove', () => {
  const text = fc.string({ unit: fc.constantFrom('/', '\n', 'a', '.') });
  fc.assert(
    fc.property(text, (value) => {
      expect(trimEndOf(value, '/\n')).toBe(value.replace(/[/\n]+$/, ''));
      expect(trimEndsOf(value, '/')).toBe(value.replace(/^\/+|\/+$/g, ''));
    }),
  );
});
