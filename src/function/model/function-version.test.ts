import { expect, test } from 'vitest';
import { isBefore, parseVersion } from './function-version.ts';

test.each([
  ['v0.1.5', { major: 0, minor: 1, patch: 5 }],
  ['0.2.3', { major: 0, minor: 2, patch: 3 }],
  ['v0.1', { major: 0, minor: 1, patch: Infinity }],
  ['~0.1.1', { major: 0, minor: 1, patch: Infinity }],
  ['0.1.x', { major: 0, minor: 1, patch: Infinity }],
  ['^0.1.1', { major: 0, minor: 1, patch: Infinity }],
  ['^1.2.3', { major: 1, minor: Infinity, patch: Infinity }],
  ['latest', undefined],
  ['unstable', undefined],
  ['v0.1-yuwenma', undefined],
  ['v1', undefined],
])('the tag %s', (tag, expected) => {
  expect(parseVersion(tag)).toEqual(expected);
});

test.each([
  ['v0.1.1', '0.1.2', true],
  ['v0.1.2', '0.1.2', false],
  ['v0.1', '0.1.2', false],
  ['v0.1', '0.2.0', true],
  ['v1.0.0', '0.2.0', false],
  ['v0.10.0', '0.2.0', false],
  ['latest', '0.1.2', false],
] as const)('%s is before %s: %s', (tag, release, expected) => {
  expect(isBefore(parseVersion(tag), release)).toBe(expected);
});
