import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { checkImage, isPinned } from './check-image.ts';

const DIGEST = `sha256:${'a1'.repeat(32)}`;

test.each([
  'set-namespace',
  'gcr.io/kpt-fn/set-namespace:v0.4.1',
  'localhost/fn',
  'localhost:5000/team/fn:latest',
  'Registry.Example/a__b/c-d.e:V_1',
  `ghcr.io/kptdev/fn@${DIGEST}`,
  `ghcr.io/kptdev/fn:v1@${DIGEST}`,
])('%s is a name', (image) => {
  expect(() => checkImage(image)).not.toThrow();
});

test.each([
  '',
  '-v',
  '--privileged',
  '--volume=/:/host',
  'fn:-x',
  'fn:',
  '/fn',
  'fn//x',
  '-host/fn',
  'fn --privileged',
  'fn\n',
  'fn@sha256:abc',
  `fn@${DIGEST}@${DIGEST}`,
  '../fn',
  'FN',
  `${'a/'.repeat(300)}a`,
])('%j is none', (image) => {
  expect(() => checkImage(image)).toThrow('is not a valid name');
});

test('what passes is never an option and is one word', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'-a.:/@_ =\n', '--'), maxLength: 12 }), (image) => {
      try {
        checkImage(image);
      } catch {
        return;
      }
      expect(image).toMatch(/^[a-z0-9][^\s=]*$/);
    }),
    { numRuns: runs(100) },
  );
});

test('only a digest pins', () => {
  expect(isPinned(`fn@${DIGEST}`)).toBe(true);
  expect(isPinned('fn:v1')).toBe(false);
  expect(isPinned(DIGEST)).toBe(false);
});
