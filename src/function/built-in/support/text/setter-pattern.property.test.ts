// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../../test/support/runs.ts';
import { deriveSetters, expandPattern, parseSetterPattern } from './setter-pattern.ts';

const CASES: [pattern: string, value: string, expected: Record<string, string> | undefined][] = [
  ['${a}', 'x', { a: 'x' }],
  ['foo-${env}-bar-${region}-baz', 'foo-dev-bar-us-east-1-baz', { env: 'dev', region: 'us-east-1' }],
  [
    '${registry}/${app~!@#$%^&*()<>?:"|}/${name}:${tag}',
    'gcr.io/my-app/backend:1.0.0',
    { registry: 'gcr.io', 'app~!@#$%^&*()<>?:"|': 'my-app', name: 'backend', tag: '1.0.0' },
  ],
  ['${image}:${tag}', 'foo-dev', undefined],
  ['${image}${tag}', 'nginx:1.2', undefined],
  ['${project}/${image}${tag}', 'p/nginx:1.2', undefined],
  ['${a}-${b}', 'x-y-z', { a: 'x-y', b: 'z' }],
  ['a${x}', 'ba1', { x: '1' }],
  ['${x}b', 'abc', { x: 'a' }],
  ['${a}:${b}', 'x\n:y', undefined],
];

test.each(CASES)('%s of %s', (pattern, value, expected) => {
  const found = deriveSetters(parseSetterPattern(pattern), value);
  expect(found === undefined ? undefined : Object.fromEntries(found)).toEqual(expected);
});

test('takes the same as a regular expression whose groups take all that they can', () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', '-'), maxLength: 2 });
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 2, maxLength: 4 }),
      fc.string({ unit: fc.constantFrom('a', 'b', '-') }),
      (literals, value) => {
        const text = literals.reduce((all, literal, at) => `${all}\${${at}}${literal}`);
        const groups = new RegExp(literals.join('(.*)')).exec(value)?.slice(1);
        const expected = groups?.every((group) => group !== '') === true ? groups : undefined;
        const found = deriveSetters(parseSetterPattern(text), value);
        expect(found === undefined ? undefined : [...found.values()]).toEqual(expected);
      },
    ),
    { numRuns: runs(100) },
  );
});

test('names what has no value', () => {
  const values: Record<string, string> = { a: '1' };
  expect(expandPattern(parseSetterPattern('x${a}${b}'), (name) => values[name])).toEqual({
    text: 'x1',
    missing: ['b'],
  });
});
