import { expect, test } from 'vitest';
import { pathGlob } from './path-glob.ts';

test.each<[glob: string, path: string, matches: boolean]>([
  ['*.yaml', 'a.yaml', true],
  ['*.yaml', 'b/a.yaml', false],
  ['**/*.yaml', 'a.yaml', true],
  ['**/*.yaml', 'b/c/a.yaml', true],
  ['b/**', 'b/c/a.yaml', true],
  ['b/**/a.yaml', 'b/a.yaml', true],
  ['a.yaml', 'axyaml', false],
  ['?.yaml', 'a.yaml', true],
  ['[!a].yaml', 'a.yaml', false],
  ['[ab].yaml', 'b.yaml', true],
  ['{one,two}/*.yaml', 'two/a.yaml', true],
  ['{one,two}/*.yaml', 'three/a.yaml', false],
  ['a,b}.yaml', 'a,b}.yaml', true],
  ['\\*.yaml', '*.yaml', true],
  ['\\*.yaml', 'a.yaml', false],
  ['a+(b)|c^$', 'a+(b)|c^$', true],
])('%s and %s: %s', (glob, path, matches) => {
  expect(pathGlob(glob, 'glob').test(path)).toBe(matches);
});

test('an invalid glob is reported', () => {
  expect(() => pathGlob('{a', 'by-file-path')).toThrow('by-file-path: ');
});
