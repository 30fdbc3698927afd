import { expect, test } from 'vitest';
import { Resource } from '../../../resource/resource.ts';
import { shownValue } from './shown-value.ts';

test('values are shown in quotes, and cut', () => {
  expect(shownValue('a "b"', ['spec.image'])).toBe('"a \\"b\\""');
  expect(shownValue('x'.repeat(10_000), []).length).toBeLessThan(300);
});

test.each([
  ['a password', 'x', ['spec.dbPassword']],
  ['a setter', 'x', ['spec.a', 'api-key']],
  ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nabc', ['data.a']],
  ['a signed token', 'eyJhbGciOi.eyJzdWIiOi.abc', ['data.a']],
  ['a token by its form', `ghp_${'a1'.repeat(18)}`, ['data.a']],
])('hidden: %s', (_, value, names) => {
  expect(shownValue(value, names)).toBe('(hidden)');
});

test('everything in a Secret is hidden', () => {
  const secret = Resource.from({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } });
  expect(shownValue('x', ['data.a'], secret)).toBe('(hidden)');
});

test('text before @ is hidden only after ://', () => {
  expect(shownValue('https://anna:pw@example.org/a', [])).toBe('"https://***@example.org/a"');
  expect(shownValue('nginx:1.25@sha256:0123', [])).toBe('"nginx:1.25@sha256:0123"');
});
